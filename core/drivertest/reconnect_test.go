package drivertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// reconnecting is a client that sends nothing for a while after its connection broke.
type reconnecting struct {
	*Link

	mu   sync.Mutex // protects back
	back time.Time  // when it is connected again
}

func (r *reconnecting) send(call func() error) error {
	r.mu.Lock()
	down := time.Now().Before(r.back)
	r.mu.Unlock()
	if down {
		return driver.NotSent(errors.New("not connected"))
	}
	err := call()
	if errors.Is(err, errReset) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.back = time.Now().Add(3 * time.Second)
	}
	return err
}

func (r *reconnecting) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	err = r.send(func() (err error) { g, err = r.Link.Acquire(ctx, c); return err })
	return g, err
}

func (r *reconnecting) Wait(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	err = r.send(func() (err error) { g, err = r.Link.Wait(ctx, c); return err })
	return g, err
}

func (r *reconnecting) Renew(ctx context.Context, claims []driver.Claim) (errs []error) {
	err := r.send(func() error { errs = r.Link.Renew(ctx, claims); return errs[0] })
	if errs == nil {
		errs = slices.Repeat([]error{err}, len(claims))
	}
	return errs
}

func (r *reconnecting) Release(ctx context.Context, c driver.Claim) error {
	return r.send(func() error { return r.Link.Release(ctx, c) })
}

func TestAClientHasTimeToConnectAgain(t *testing.T) {
	t.Parallel()
	failed, _ := play(t, networkCases[0], func(testing.TB) Config {
		s := memlock.New()
		return Config{
			Driver: func() driver.Driver { return s },
			Through: func() (driver.Driver, []Wire) {
				r := &reconnecting{Link: NewLink(s)}
				return r, []Wire{r}
			},
		}
	})
	for _, why := range failed {
		t.Error(why)
	}
}
