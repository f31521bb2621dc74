package servers

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the process when the test binary dies, however it
// does: a killed or timed-out test leaves no server behind.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
