//go:build !unix

package main

import (
	"errors"
	"os"
)

func stopProcess(*os.Process) error     { return errors.ErrUnsupported }
func continueProcess(*os.Process) error { return errors.ErrUnsupported }
