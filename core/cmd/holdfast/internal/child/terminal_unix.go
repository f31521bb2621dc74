//go:build unix

package child

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the controlling terminal, if this process has one.
type terminal struct {
	file  *os.File    // nil if there is none
	own   int         // this process's group
	alone bool        // nobody else of the group seems to use it
	had   atomic.Bool // the command had the terminal
}

// openTerminal finds the terminal. If input or output is something else, this process may be part of a
// pipeline whose other parts use the terminal, such as a pager.
func openTerminal() *terminal {
	t := &terminal{own: syscall.Getpgrp()}
	if file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		t.file = file
		t.alone = foreground(os.Stdin) != 0 && foreground(os.Stdout) != 0
	}
	return t
}

// foreground is the group that has the terminal, 0 if there is none.
func (t *terminal) foreground() int {
	if t.file == nil {
		return 0
	}
	return foreground(t.file)
}

// foreground is 0 if the file is not the controlling terminal.
func foreground(file *os.File) int {
	pgid, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return pgid
}

// give makes a command start in the foreground, if that is where this process is. In a pipeline, the
// command begins in the background: see lend.
func (t *terminal) give(attr *syscall.SysProcAttr) {
	if t.alone && t.foreground() == t.own {
		attr.Foreground, attr.Ctty = true, int(t.file.Fd())
		t.had.Store(true)
	}
}

// lend gives the terminal to a command that has been stopped because it wants to use it, and says whether
// that was possible: not if this process is in the background itself.
func (t *terminal) lend(pgid int) bool {
	if t.foreground() != t.own || t.set(pgid) != nil {
		return false
	}
	t.had.Store(true)
	return true
}

// given is called when a command has been started. From here on this process may be in the background,
// where to set the foreground is a reason to be stopped. A command must not inherit that this is ignored.
func (t *terminal) given() {
	if t.file != nil {
		signal.Ignore(syscall.SIGTTOU)
	}
}

// pass gives the terminal to the command's group again, if this process has it.
func (t *terminal) pass(pgid int) {
	if t.alone || t.had.Load() {
		t.lend(pgid)
	}
}

// takeBack brings this process to the foreground again, if the command's group has it. Its shell may have
// taken it meanwhile.
func (t *terminal) takeBack(pgid int) {
	if t.had.Load() && t.foreground() == pgid {
		_ = t.set(t.own) // the terminal may be gone
	}
}

func (t *terminal) set(pgid int) error {
	return unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, pgid)
}

func (t *terminal) close() {
	if t.file != nil {
		signal.Reset(syscall.SIGTTOU)
		_ = t.file.Close()
	}
}
