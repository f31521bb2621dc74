package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// mainEnv makes the test binary the program, and its child.
const mainEnv = "HOLDFAST_POSTGRES_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// runProgram runs the program to its end, on a server of its own.
func runProgram(t *testing.T, env ...string) (output string, status int) {
	t.Helper()
	url := "postgres://postgres@" + servers.Postgres(t).Addr() + "/postgres?sslmode=disable"
	cmd := exec.CommandContext(t.Context(), os.Args[0], url)
	cmd.Env = append(append(os.Environ(), mainEnv+"=1"), env...)
	out, _ := cmd.CombinedOutput() // its error is the status
	t.Logf("%s", out)
	if strings.Contains(string(out), "Skipped") {
		servers.Lacks(t, "this system has no SIGSTOP")
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestALateCommitIsRefused(t *testing.T) {
	t.Parallel()
	output, status := runProgram(t)
	if status != 0 || !strings.Contains(output, "refused: ") || !strings.Contains(output, `is "shipped"`) {
		t.Errorf("exit status %d", status)
	}
}

func TestItFailsIfTheLateCommitGetsIn(t *testing.T) {
	t.Parallel()
	output, status := runProgram(t, carelessEnv+"=1")
	if status != 1 || !strings.HasSuffix(output, "FAILED: the late write got in\n") {
		t.Errorf("exit status %d", status)
	}
}
