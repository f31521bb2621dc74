package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// mainEnv makes the test binary the program, and its children.
const mainEnv = "HOLDFAST_FENCING_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// runProgram runs the program to its end.
func runProgram(t *testing.T, env ...string) (output string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(append(os.Environ(), mainEnv+"=1"), env...)
	out, _ := cmd.CombinedOutput() // its error is the status
	t.Logf("%s", out)
	if strings.Contains(string(out), "Skipped") {
		servers.Lacks(t, "this system has no SIGSTOP")
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestTheLateWriteIsRefusedOnlyWithAFence(t *testing.T) {
	t.Parallel()
	output, status := runProgram(t)
	if status != 0 {
		t.Errorf("exit status %d", status)
	}
	without, with, _ := strings.Cut(output, "With a fence")
	for part, want := range map[string][2]string{without: {"accepted", `is "cancelled"`}, with: {"refused", `is "shipped"`}} {
		if !strings.Contains(part, want[0]) || !strings.Contains(part, want[1]) {
			t.Errorf("not %q in:\n%s", want, part)
		}
	}
}

func TestItFailsIfTheLateWriteGetsIn(t *testing.T) {
	t.Parallel()
	output, status := runProgram(t, sabotageEnv+"=1")
	if status != 1 || !strings.HasSuffix(output, "FAILED: the late write got in\n") {
		t.Errorf("exit status %d", status)
	}
}
