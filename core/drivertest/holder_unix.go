//go:build unix

package drivertest

import (
	"os"
	"os/exec"
	"syscall"
)

// alone gives the process a group of its own: if the test binary dies, the kernel wakes and
// ends a stopped process of a group that nobody is left to look after.
func alone(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func stop(p *os.Process) error   { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
