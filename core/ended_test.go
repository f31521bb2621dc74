package core_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// Whoever reads that nothing was asked may conclude that nothing was granted.
func TestTheErrorOfACallWhoseCommandIsUnderWayDoesNotSayThatNothingWasAsked(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.All(lab.RequestLost)
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := b.locks.TryAcquire(ctx, "name")
		b.is(err, context.DeadlineExceeded)
		if err == nil || strings.Contains(err.Error(), "was asked") {
			b.Errorf("%v", err)
		}
		b.link.All(lab.Delivered)
	})
}

// stuckContext is a caller's context whose methods wait from some time on.
type stuckContext struct {
	context.Context
	from time.Time
	free chan struct{}
}

func (c *stuckContext) Value(key any) any {
	if !time.Now().Before(c.from) {
		<-c.free
	}
	return c.Context.Value(key)
}

func TestACallersContextThatWaitsKeepsNoLeaseFromItsEnd(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		other := b.acquire(b.locks, "other", core.WithoutRenewal()).Context()
		base, cancel := context.WithCancel(b.Context())
		defer cancel()
		stuck := &stuckContext{base, time.Now().Add(ttl / 2), make(chan struct{})}
		leases, done := make(chan *core.Lease, 1), make(chan error, 1)
		go func() {
			done <- b.locks.Do(stuck, "name", func(ctx context.Context) error {
				x, _ := core.FromContext(ctx)
				leases <- x
				<-ctx.Done()
				return nil
			}, core.WithMaxHold(ttl/2))
		}()
		x := <-leases
		time.Sleep(ttl)
		looked := make(chan error, 1)
		go func() { looked <- x.Err() }()
		synctest.Wait()
		b.is(other.Err(), context.Canceled)
		select {
		case err := <-looked:
			b.is(err, core.ErrLost)
		default:
			b.Error("Err waits for the caller's context")
		}
		close(stuck.free)
		b.is(<-done, core.ErrLost)
	})
}
