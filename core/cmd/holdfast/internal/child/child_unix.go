//go:build unix

package child

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Child is a command that runs.
type Child struct {
	guard    *guard
	terminal *terminal

	pid    int                     // also that of its group; set before Start returns
	news   chan syscall.WaitStatus // of the reaper; nil if this process waits itself
	ended  chan struct{}           // closed when the command has ended
	status syscall.WaitStatus      // known then

	mu     sync.Mutex // protects reaped
	reaped bool       // its number may be another's
}

// Start runs a command: the path of a program, its arguments, of which the first is its own name, and its
// environment. The command has this process's standard streams, and its terminal if this process has it.
func Start(path string, args, env []string) (*Child, error) {
	var news chan syscall.WaitStatus
	if orphans.reaping() {
		news = make(chan syscall.WaitStatus, 16)
	}
	g, err := startGuard()
	if err != nil {
		return nil, err
	}
	c := &Child{guard: g, terminal: openTerminal(), news: news, ended: make(chan struct{})}
	started := make(chan error)
	go c.run(path, args, env, started)
	if err := <-started; err != nil {
		g.dismiss()
		c.terminal.close()
		return nil, err
	}
	return c, nil
}

// run forks and waits on one thread. Linux sends the death signal when the thread that forked ends, and
// Go may end a thread that no goroutine has locked.
func (c *Child) run(path string, args, env []string, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := &syscall.SysProcAttr{Setpgid: true}
	c.terminal.give(attr)
	dieWithParent(attr)
	p, err := orphans.start(path, args, &os.ProcAttr{Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attr}, c.news)
	if err != nil {
		started <- err
		return
	}
	c.pid = p.Pid
	_ = p.Release() // wait does it all: os.Process knows nothing of stops
	c.guard.watch(c.pid)
	c.terminal.given()
	started <- nil
	c.wait()
}

// wait returns when the command has ended. A command that is stopped for its terminal's sake stops this
// process's group too, for the shell to notice, unless it can be given the terminal.
func (c *Child) wait() {
	defer close(c.ended)
	defer func() { c.terminal.takeBack(c.pid) }()
	for {
		status, err := c.next()
		switch {
		case errors.Is(err, syscall.EINTR):
		case err == nil && status.Stopped():
			c.stopped(status.StopSignal())
		default:
			c.mu.Lock()
			c.reaped, c.status = true, status
			c.mu.Unlock()
			return
		}
	}
}

// next is what happens to the command next.
func (c *Child) next() (status syscall.WaitStatus, err error) {
	if c.news != nil {
		return <-c.news, nil
	}
	_, err = syscall.Wait4(c.pid, &status, syscall.WUNTRACED, nil)
	return status, err
}

// stopped is called when a signal has stopped the command.
func (c *Child) stopped(by syscall.Signal) {
	wants := by == syscall.SIGTTIN || by == syscall.SIGTTOU
	switch {
	case wants && c.terminal.lend(c.pid):
		_ = syscall.Kill(-c.pid, syscall.SIGCONT) // it has not been reaped
	case wants, by == syscall.SIGTSTP:
		_ = syscall.Kill(0, syscall.SIGSTOP) // it cannot fail for this process itself
	}
}

// Ended is closed when the command has ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Status is how the command has ended: its exit status, or 128 and the number of the signal, as shells
// say it.
func (c *Child) Status() int {
	<-c.ended
	if c.status.Signaled() {
		return 128 + int(c.status.Signal())
	}
	return c.status.ExitStatus()
}

// Signal sends a signal to all processes of the command's group, or to the command if it has left that. SIGCONT gives the terminal
// back to the command, if this process has got it from its shell.
func (c *Child) Signal(sig syscall.Signal) {
	if sig == syscall.SIGCONT {
		c.terminal.pass(c.pid)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped { // its number may be another's
		return
	}
	_ = syscall.Kill(-c.pid, sig)
	if group, err := syscall.Getpgid(c.pid); err == nil && group != c.pid {
		_ = syscall.Kill(c.pid, sig)
	}
}

// Stop ends the command and all that is left of its group: with SIGTERM, and after the grace with SIGKILL.
// It returns when they have ended.
func (c *Child) Stop(grace time.Duration) {
	c.Signal(syscall.SIGTERM)
	c.Signal(syscall.SIGCONT) // one that is stopped would never know
	timer := time.NewTimer(grace)
	defer timer.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for c.alive() {
		select {
		case <-tick.C:
		case <-timer.C:
			c.Signal(syscall.SIGKILL)
			_ = syscall.Kill(-c.pid, syscall.SIGKILL) // what is left of its group, if it has ended
			<-c.ended
			return
		}
	}
}

// alive says whether anybody of the group is left. The group keeps its number from being given to another
// process. The command itself may have left it: then it counts too.
func (c *Child) alive() bool {
	select {
	case <-c.ended:
		return !errors.Is(syscall.Kill(-c.pid, 0), syscall.ESRCH)
	default:
		return true
	}
}

// Close lets go of what a command needed that has ended. What it has left in the background is not ended.
func (c *Child) Close() {
	<-c.ended
	c.guard.dismiss()
	c.terminal.close()
}

// Interrupted says that a signal such as that of Ctrl-C has ended the command, while it or this process
// was in the foreground of a terminal. A shell script in which this process runs should end by it, too.
// raise does that: it gives this process the same end, and its group too if only the command got the signal.
func (c *Child) Interrupted() (raise func(), ok bool) {
	<-c.ended
	sig := c.status.Signal()
	if !c.status.Signaled() || sig != syscall.SIGINT && sig != syscall.SIGQUIT {
		return nil, false
	}
	to := os.Getpid()
	switch {
	case c.terminal.had.Load():
		to = 0
	case c.terminal.foreground() != c.terminal.own: // no terminal has sent it
		return nil, false
	}
	return func() {
		signal.Reset(sig)
		_ = syscall.Kill(to, sig)
		time.Sleep(100 * time.Millisecond) // it arrives at any thread
	}, true
}
