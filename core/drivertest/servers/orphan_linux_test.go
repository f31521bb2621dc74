package servers

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

const helperEnv = "HOLDFAST_TEST_HELPER"

// TestHelperHoldsAServer is no test: TestServerDiesWithAKilledTestBinary runs it in a
// process of its own, and kills that.
func TestHelperHoldsAServer(t *testing.T) {
	t.Parallel()
	if os.Getenv(helperEnv) != "1" {
		t.Skip("runs only inside another test")
	}
	s := Redis(t)
	_, _ = os.Stdout.WriteString("\npid " + strconv.Itoa(s.PID()) + "\n")
	select {}
}

func TestServerDiesWithAKilledTestBinary(t *testing.T) {
	t.Parallel()
	Find(t, "redis-server", "redis-server") // here, so that the helper cannot skip unseen
	helper := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperHoldsAServer$")
	helper.Env = append(os.Environ(), helperEnv+"=1", "TMPDIR="+t.TempDir())
	out, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			pid, err = strconv.Atoi(text)
		}
	}
	_ = helper.Process.Kill()
	_ = helper.Wait() // it was killed
	if pid == 0 || err != nil {
		t.Fatalf("the helper started no server: %v", err)
	}
	wantGone(t, pid)
}

// TestServerOutlivesTheThreadThatStartedIt: the death signal is sent when the forking
// thread ends, and a goroutine that ends with its thread locked ends the thread.
func TestServerOutlivesTheThreadThatStartedIt(t *testing.T) {
	t.Parallel()
	started := make(chan *Server)
	go func() {
		runtime.LockOSThread()
		started <- Redis(t)
	}()
	s := <-started
	c := dial(t, s.Addr())
	for range 10 {
		c.do("PING", "+PONG")
		runtime.GC() // gives the thread time, and a reason, to end
	}
	if s.PID() == 0 {
		t.Error("the server has ended")
	}
}
