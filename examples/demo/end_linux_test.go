package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestADemoThatEndsEarlyLeavesNothing(t *testing.T) {
	t.Parallel()
	for part, row := range map[string]struct {
		begins    string
		processes int
	}{
		"while all servers are up":  {"2  With", 5}, // the demo, a store and three servers
		"while a process is frozen": {"SIGSTOP", 3}, // the demo, a store and the holder
	} {
		t.Run("interrupted "+part, func(t *testing.T) {
			t.Parallel()
			rdb := realRedis(t)
			cmd, output := playUntil(t, row.begins, "-redis", rdb.Options().Addr)
			await(t, row.processes)
			interrupt(t, cmd, output)
			checkKeys(t, rdb)
		})
		t.Run("killed "+part, func(t *testing.T) {
			t.Parallel()
			cmd, _ := playUntil(t, row.begins)
			await(t, row.processes)
			noError(t, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
			await(t, 0)
		})
	}
}

// interrupt is Ctrl-C.
func interrupt(t *testing.T, cmd *exec.Cmd, output io.Reader) {
	t.Helper()
	noError(t, cmd.Process.Signal(os.Interrupt))
	rest, _ := io.ReadAll(output) // its errors are those of Wait
	_ = cmd.Wait()                // the exit status says it
	if status := cmd.ProcessState.ExitCode(); status != 130 || !bytes.HasSuffix(rest, []byte("\nInterrupted.\n")) {
		t.Errorf("exit status %d, want 130, after:\n%s", status, rest)
	}
	if left := processes(t); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
}

// playUntil starts the demo and returns once it has printed a line with text.
func playUntil(t *testing.T, text string, args ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := demo(t, "", args...)
	stdout, err := cmd.StdoutPipe()
	noError(t, err)
	noError(t, cmd.Start())
	output := bufio.NewReader(stdout)
	for line := ""; !strings.Contains(line, text); {
		if line, err = output.ReadString('\n'); err != nil {
			t.Fatalf("no %q: %v", text, err)
		}
	}
	return cmd, output
}

// await waits until the test has so many processes.
func await(t *testing.T, running int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for len(processes(t)) != running {
		if time.Now().After(deadline) {
			t.Fatalf("running: %q, want %d", processes(t), running)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// processes lists the processes that belong to the test. Those that have ended are not
// among them, whether somebody has waited for them or not.
func processes(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	noError(t, err)
	var found []string
	for _, file := range files {
		env, _ := os.ReadFile(file) // empty if it has ended, or is another user's
		if bytes.Contains(env, []byte(demoEnv+"="+t.Name()+"\x00")) {
			found = append(found, file)
		}
	}
	return found
}
