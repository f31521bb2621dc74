package child

import "syscall"

// self is this program, also if its file is replaced or deleted meanwhile.
func self() (string, error) { return "/proc/self/exe", nil }

// dieWithParent makes the kernel kill the command when this process dies, however it does.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
