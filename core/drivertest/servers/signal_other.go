//go:build !unix

package servers

import (
	"errors"
	"os"
)

// askToEnd kills: there is no gentler way here.
func askToEnd(p *os.Process, _ os.Signal) { _ = p.Kill() } // fails only if it has ended

func stopProcess(*os.Process) error { return errors.ErrUnsupported }

func continueProcess(*os.Process) error { return errors.ErrUnsupported }
