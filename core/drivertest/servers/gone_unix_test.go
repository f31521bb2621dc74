//go:build unix

package servers

import (
	"errors"
	"syscall"
	"testing"
	"time"
)

// wantGone wants no process of that id. A process that only waits for a parent to notice
// its end is gone too.
func wantGone(t *testing.T, pid int) {
	t.Helper()
	for range 1000 {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return
		}
		if state, _ := processState(pid); state == 'Z' {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}
