package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the child when its parent dies, however it does.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
