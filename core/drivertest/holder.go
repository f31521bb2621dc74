package drivertest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// holderPlace and holderTTL are the environment variables that make a test process a holder.
const (
	holderPlace = "HOLDFAST_TEST_HOLDER"
	holderTTL   = "HOLDFAST_TEST_HOLDER_TTL"
)

// holderSays begins each line that a holder writes. The testing package writes other lines.
const holderSays = "holdfast-holder:"

// waking is what a holder finds when it wakes up.
type waking struct{ Lost, ContextOver, ReleaseLost bool }

// Hold is the code of a process that holds a lease while the suite freezes it. The suite starts the
// process from the package's own test binary. So a package whose services have a Holder must have
// this test, with this name:
//
//	func TestHolder(t *testing.T) {
//		t.Parallel()
//		drivertest.Hold(t, func(holder string) driver.Driver { return redislock.New(dial(t, holder)) })
//	}
//
// open connects to the service. In any other process, Hold does nothing.
func Hold(t *testing.T, open func(holder string) driver.Driver) {
	t.Helper()
	place := os.Getenv(holderPlace)
	if place == "" {
		return
	}
	ttl, err := time.ParseDuration(os.Getenv(holderTTL))
	if err != nil {
		t.Fatal(err)
	}
	locks, err := core.New(open(place), core.WithTTL(ttl))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Close(t.Context()) }()
	x, err := locks.Acquire(t.Context(), "name")
	if err != nil {
		t.Fatal(err)
	}
	say(t, x.Fence())
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil { // frozen meanwhile
		t.Fatal(err)
	}
	found := waking{Lost: errors.Is(x.Err(), core.ErrLost)}
	found.ContextOver = x.Context().Err() != nil
	found.ReleaseLost = errors.Is(x.Release(t.Context()), core.ErrLost)
	say(t, found)
}

func say(t *testing.T, what any) {
	t.Helper()
	text, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\n%s%s\n", holderSays, text)
}

// holder is the process of [Hold], as the suite sees it.
type holder struct {
	e     *env
	cmd   *exec.Cmd
	in    io.Writer
	out   *bufio.Reader
	fence uint64
}

// startHolder starts such a process, and returns once it holds "name".
func (e *env) startHolder() *holder {
	e.Helper()
	self, err := os.Executable()
	e.noError(err)
	cmd := exec.CommandContext(e.Context(), self, "-test.run=^TestHolder$", "-test.count=1", "-test.timeout=5m") //nolint:gosec // G204: ourselves
	cmd.Env = append(os.Environ(), holderPlace+"="+e.Holder, holderTTL+"="+e.longTTL().String())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	e.noError(err)
	out, err := cmd.StdoutPipe()
	e.noError(err)
	alone(cmd)
	e.noError(cmd.Start())
	e.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	h := &holder{e: e, cmd: cmd, in: in, out: bufio.NewReader(out)}
	h.listen(&h.fence)
	return h
}

// listen waits for what the process says next.
func (h *holder) listen(what any) {
	h.e.Helper()
	var all strings.Builder
	for {
		line, err := h.out.ReadString('\n')
		if text, ok := strings.CutPrefix(line, holderSays); ok {
			h.e.noError(json.Unmarshal([]byte(text), what))
			return
		}
		all.WriteString(line)
		if err != nil {
			h.e.Fatalf("the holder has ended (is there a TestHolder?): %v\n%s", err, all.String())
		}
	}
}

func (h *holder) freeze() {
	h.e.Helper()
	h.e.noError(stop(h.cmd.Process))
}

func (h *holder) thaw() {
	h.e.Helper()
	h.e.noError(resume(h.cmd.Process))
}

// ask lets the process look at its lease.
func (h *holder) ask() (found waking) {
	h.e.Helper()
	_, err := io.WriteString(h.in, "\n")
	h.e.noError(err)
	h.listen(&found)
	return found
}
