//go:build !unix

package drivertest

import (
	"errors"
	"os"
	"os/exec"
)

func alone(*exec.Cmd) {}

func stop(*os.Process) error   { return errors.ErrUnsupported }
func resume(*os.Process) error { return errors.ErrUnsupported }
