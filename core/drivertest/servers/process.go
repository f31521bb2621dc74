package servers

import (
	"os"
	"os/exec"
	"runtime"
	"time"
)

// process is one running server process.
type process struct {
	pid  int
	os   *os.Process
	gone chan struct{} // closed once the process has ended and has been waited for
	err  error         // how it has ended, once it has
}

// startProcess runs a command as the account (see runAs), with env beside its own environment and
// its output going to log.
//
// One goroutine forks and waits, on a thread that is its own until the process has ended:
// Linux sends the death signal (see dieWithParent) when the thread that forked ends, and
// Go ends a thread with the goroutine that left it locked.
func startProcess(path string, args, env []string, account, dir string, log *os.File) (*process, error) {
	cmd := exec.Command(path, args...) //nolint:gosec,noctx // G204: the caller is a test; and the server outlives every context, until Cleanup
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	dieWithParent(cmd)
	if err := runAs(cmd, account); err != nil {
		return nil, err
	}
	p := &process{gone: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.gone)
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	p.os, p.pid = cmd.Process, cmd.Process.Pid
	return p, nil
}

func (p *process) hasEnded() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// kill ends the process at once, a stopped one too, and waits for it.
func (p *process) kill() {
	_ = p.os.Kill() // fails only if it has ended
	<-p.gone
}

// terminate asks the process to end, by SIGTERM if quit is nil, and kills it if it does not.
func (p *process) terminate(quit os.Signal) {
	askToEnd(p.os, quit)
	t := time.NewTimer(endBound)
	defer t.Stop()
	select {
	case <-p.gone:
	case <-t.C:
		p.kill()
	}
}
