//go:build unix

package main

import (
	"errors"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/core/cmd/holdfast/internal/child"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func TestASignalWhileTheCommandStartsIsTheCommands(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	ctx, r := newRelay(t.Context())
	defer r.stop()
	c, detach, err := r.start(func() (*child.Child, error) {
		r.signals <- syscall.SIGUSR1
		backendtest.Eventually(f, "it is taken", func() bool { return len(r.signals) == 0 })
		return child.Start("/bin/sleep", []string{"sleep", "1000"}, nil)
	}, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer detach()
	select {
	case <-c.Ended():
	case <-ctx.Done(): // the signal ended the wait instead
		c.Signal(syscall.SIGKILL)
	}
	if status := c.Status(); status != signalled+int(syscall.SIGUSR1) || ctx.Err() != nil {
		t.Errorf("status %d, %v", status, ctx.Err())
	}
}

func TestNoCommandStartsAfterASignalHasEndedTheWait(t *testing.T) {
	t.Parallel()
	ctx, r := newRelay(t.Context())
	defer r.stop()
	r.signals <- syscall.SIGTERM
	<-ctx.Done()
	_, _, err := r.start(func() (*child.Child, error) {
		t.Error("it began")
		return nil, errors.ErrUnsupported
	}, func() error { return nil })
	if _, ended := errors.AsType[signalError](err); !ended {
		t.Error(err)
	}
	if status, err := r.instead(failed, err); status != signalled+int(syscall.SIGTERM) || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}
