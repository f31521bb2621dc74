//go:build unix && !linux

package child

import (
	"os"
	"syscall"
)

func self() (string, error) { return os.Executable() }

// dieWithParent does nothing: here only the guard ends the command.
func dieWithParent(*syscall.SysProcAttr) {}
