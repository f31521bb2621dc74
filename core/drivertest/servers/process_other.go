//go:build !linux

package servers

import "os/exec"

// dieWithParent does nothing: only Linux can tie a process to the one that started it.
// Elsewhere a killed test binary leaves its servers behind.
func dieWithParent(*exec.Cmd) {}
