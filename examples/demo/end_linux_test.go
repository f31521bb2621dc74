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

func TestInterruptLeavesNoProcessesAndNoKeys(t *testing.T) {
	t.Parallel()
	rdb := realRedis(t)
	cmd, output := playUntil(t, "2  With", "", "-redis", rdb.Options().Addr)
	await(t, 5) // the demo, a store and three doors
	interrupt(t, cmd, output)
	checkKeys(t, rdb)
}

func TestInterruptEndsAFrozenChild(t *testing.T) {
	t.Parallel()
	cmd, output := playUntil(t, "SIGSTOP", "")
	await(t, 3) // the demo, a store and the holder
	interrupt(t, cmd, output)
}

// interrupt is Ctrl-C.
func interrupt(t *testing.T, cmd *exec.Cmd, output io.Reader) {
	t.Helper()
	began := time.Now()
	noError(t, cmd.Process.Signal(os.Interrupt))
	rest, _ := io.ReadAll(output) // its errors are those of Wait
	_ = cmd.Wait()                // the exit status says it
	if status := cmd.ProcessState.ExitCode(); status != 130 || !bytes.HasSuffix(rest, []byte("\nInterrupted.\n")) {
		t.Errorf("exit status %d, want 130, after:\n%s", status, rest)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if left := processes(t); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
}

func TestAKilledDemoLeavesNoFrozenChild(t *testing.T) {
	t.Parallel()
	cmd, _ := playUntil(t, "SIGSTOP", onlyFreeze)
	await(t, 3)
	noError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	await(t, 0)
}

// playUntil starts the demo and returns once it has printed a line with text.
func playUntil(t *testing.T, text, env string, args ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := demo(t, env, args...)
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
