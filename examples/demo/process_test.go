package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// Every child has to end when its parent dies, and nothing but its input tells it so.
func TestChildEndsWithItsInput(t *testing.T) {
	t.Parallel()
	redis := miniredis.RunT(t).Addr()
	book := child(t, role{Name: "store"})
	for _, name := range []string{"store", "echo", "grpc", "asynq", "holder"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := child(t, role{Name: name, Store: book.told, Locks: redis, Tasks: redis, Prefix: "t:", Queue: "t", Guarded: true})
			c.end()
			if status := c.cmd.ProcessState.ExitCode(); status != 0 || c.stderr.Len() > 0 {
				t.Errorf("exit status %d, stderr %q", status, c.stderr.String())
			}
		})
	}
}

// startedChild is a child of the test.
type startedChild struct {
	cmd    *exec.Cmd
	told   string // its first line
	stderr bytes.Buffer
	end    func()
}

func child(t *testing.T, r role) *startedChild {
	t.Helper()
	text, err := json.Marshal(r)
	noError(t, err)
	c := &startedChild{cmd: demo(t, roleEnv+"="+string(text))}
	c.cmd.Stderr = &c.stderr
	stdin, err := c.cmd.StdinPipe()
	noError(t, err)
	stdout, err := c.cmd.StdoutPipe()
	noError(t, err)
	noError(t, c.cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Errorf("%s: %v, stderr %q", r.Name, err, c.stderr.String())
	}
	c.told = strings.TrimSpace(line)
	c.end = func() {
		_ = stdin.Close() // closed already, the second time
		_ = c.cmd.Wait()  // the exit status says it
	}
	t.Cleanup(c.end)
	return c
}
