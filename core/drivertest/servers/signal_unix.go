//go:build unix

package servers

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

// askToEnd wakes the process too: a stopped one hears a signal only when it goes on.
func askToEnd(p *os.Process, quit os.Signal) {
	if quit == nil {
		quit = syscall.SIGTERM
	}
	_ = p.Signal(quit) // fails only if it has ended
	_ = p.Signal(syscall.SIGCONT)
}

// stopProcess stops the process, and returns when the kernel has done so: the signal takes
// effect some time after it was sent.
func stopProcess(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for range 1000 {
		state, known := processState(p.Pid)
		if state == 'T' {
			return nil
		}
		time.Sleep(time.Millisecond)
		if !known {
			return nil // nothing to look at: it has had its time
		}
	}
	return fmt.Errorf("process %d does not stop", p.Pid)
}

func continueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// processState is the state letter of proc(5), the field after the name in parentheses, where
// there is a /proc.
func processState(pid int) (state byte, known bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	if len(rest) == 0 {
		return 0, false
	}
	return rest[0], true
}
