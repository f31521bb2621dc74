//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/holdfast-go/holdfast/core/cmd/holdfast/internal/child"
)

// relay hands the signals that this process gets to the command. While there is none, they end the wait.
type relay struct {
	signals chan os.Signal
	cancel  context.CancelCauseFunc
	quit    chan struct{}
	gone    sync.WaitGroup
	ctx     context.Context //nolint:containedctx // that which the signals end

	mu    sync.Mutex // protects what follows
	child *child.Child
	err   func() error   // of the lease
	asked syscall.Signal // what the command was last asked to end by; 0 if by nothing
}

// signalError is a signal that ended the wait.
type signalError struct{ signal syscall.Signal }

func (e signalError) Error() string { return "ended by " + e.signal.String() }

func newRelay(ctx context.Context) (context.Context, *relay) {
	r := &relay{signals: make(chan os.Signal, 16), quit: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	for _, sig := range []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT,
	} {
		if !signal.Ignored(sig) { // as nohup(1) wants it
			signal.Notify(r.signals, sig)
		}
	}
	// Nobody reads it, and it is never stopped: what cannot be said on standard error must not end this process before
	// the command, nor change the exit status. A handler, unlike an ignored signal, is not the command's too.
	if !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
	r.gone.Go(r.serve)
	return r.ctx, r
}

func (r *relay) serve() {
	for {
		select {
		case sig := <-r.signals:
			r.pass(sig.(syscall.Signal))
		case <-r.quit:
			return
		}
	}
}

func (r *relay) pass(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.child == nil:
		if sig != syscall.SIGCONT {
			r.cancel(signalError{sig})
		}
	case sig == syscall.SIGCONT && r.err() != nil:
		// This process was stopped for longer than the lease lasts: the command is about to be ended, and must
		// not work until then.
	default:
		r.child.Signal(sig)
		if r.err() != nil && ends(sig) {
			r.cancel(signalError{sig}) // else a campaign would begin again
		}
		if ends(sig) && sig != syscall.SIGHUP { // which many daemons read their configuration by
			r.asked = sig
		}
	}
}

// ends says whether a signal asks for the end of the command, and of the campaign for it.
func ends(sig syscall.Signal) bool {
	return sig == syscall.SIGTERM || sig == syscall.SIGINT || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}

// start begins the command, and hands the signals to it until detach is called. A signal that comes
// meanwhile waits for the command. If one has ended the wait, no command begins: it would only be stopped again. err
// says whether the lease is lost.
func (r *relay) start(begin func() (*child.Child, error), err func() error) (c *child.Child, detach func(), failed error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended() {
		return nil, nil, context.Cause(r.ctx)
	}
	// While it waits, Ctrl-Z just stops this process. From here on, the command stops with it: also if it comes as the command begins.
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(r.signals, syscall.SIGTSTP)
	}
	if c, failed = begin(); failed != nil {
		signal.Reset(syscall.SIGTSTP)
		return nil, nil, failed
	}
	r.child, r.err, r.asked = c, err, 0
	return c, func() {
		signal.Reset(syscall.SIGTSTP)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.child = nil
		// The lease may have been lost since, or be found lost by its release: a campaign would begin again. If it
		// was not, the command's own end counts.
		if r.asked != 0 {
			r.cancel(signalError{r.asked})
		}
	}, nil
}

// ended says whether a signal ended the wait.
func (r *relay) ended() bool { return r.ctx.Err() != nil }

// instead is the exit status: that of a signal, if one ended the wait.
func (r *relay) instead(status int, err error) (int, error) {
	if e, ok := errors.AsType[signalError](context.Cause(r.ctx)); ok {
		return signalled + int(e.signal), nil
	}
	return status, err
}

func (r *relay) stop() {
	signal.Stop(r.signals)
	close(r.quit)
	r.gone.Wait()
	r.cancel(nil)
}
