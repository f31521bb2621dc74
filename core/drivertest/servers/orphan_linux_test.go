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

// TestHelperHoldsAServer is no test: TestServersDieWithAKilledTestBinary runs it in a
// process of its own, and kills that.
func TestHelperHoldsAServer(t *testing.T) {
	t.Parallel()
	start, ok := starts[os.Getenv(helperEnv)]
	if !ok {
		t.Skip("runs only inside another test")
	}
	_, _ = os.Stdout.WriteString("\npid " + strconv.Itoa(start(t).PID()) + "\n")
	select {}
}

func TestServersDieWithAKilledTestBinary(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]product{"redis": redisProduct(nil), "postgres": postgresProduct(nil), "mariadb": mariadbProduct(nil)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Find(t, p.binary, p.debianPackage)               // here, so that the helper cannot skip unseen
			dir, err := os.MkdirTemp("", "holdfast-orphan-") //nolint:usetesting // the server's account has to enter it
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			if err := os.Chmod(dir, 0o711); err != nil {
				t.Fatal(err)
			}
			wantGone(t, killedHelper(t, name, dir))
		})
	}
}

// killedHelper starts a helper, kills it once it has a server, and returns the server's pid.
func killedHelper(t *testing.T, name, dir string) (pid int) {
	t.Helper()
	helper := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperHoldsAServer$")
	helper.Env = append(os.Environ(), helperEnv+"="+name, "TMPDIR="+dir)
	out, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if text, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			pid, err = strconv.Atoi(text)
		}
	}
	_ = helper.Process.Kill()
	_ = helper.Wait() // it was killed
	if pid == 0 || err != nil {
		t.Fatalf("the helper started no server: %v\n%s", err, said.String())
	}
	return pid
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
	for range 10 {
		wants(t, s.Addr(), "PING", "PONG")
		runtime.GC() // gives the thread time, and a reason, to end
	}
	if s.PID() == 0 {
		t.Error("the server has ended")
	}
}
