//go:build !unix

package child

import (
	"errors"
	"syscall"
	"time"
)

// Child is a command that runs; there is none here.
type Child struct{}

// Start refuses: without process groups and their signals, a command could outlive its lease.
func Start(string, []string, []string) (*Child, error) {
	return nil, errors.New("run needs a Unix: it ends a command by a signal to its process group")
}

func (*Child) Ended() <-chan struct{}               { return nil }
func (*Child) Status() int                          { return 0 }
func (*Child) Signal(syscall.Signal)                {}
func (*Child) Stop(time.Duration)                   {}
func (*Child) Close()                               {}
func (*Child) Interrupted() (raise func(), ok bool) { return nil, false }

// Guard returns false: there is none.
func Guard() bool { return false }
