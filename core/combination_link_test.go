package core_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// prompt is a link whose calls return when their context ends, whatever becomes of the command:
// it may be executed much later. That is how the clients of most servers are.
type prompt struct{ *lab.Net }

// errLeft leaves open what the command did and may do yet.
var errLeft = fmt.Errorf("the command is under way: %w", os.ErrDeadlineExceeded)

// Capabilities implements driver.Driver.
func (p prompt) Capabilities() driver.Capabilities {
	can := p.Net.Capabilities()
	can.Punctual = true
	return can
}

// command is one of a caller, who may have left it by now.
type command struct {
	request *request
	left    atomic.Bool
}

type commandKey struct{}

// promptly makes a call, for as long as ctx stands. The far side gets nothing of ctx, which may be
// used again.
func promptly[T any](ctx context.Context, call func(context.Context) T) (answer T, err error) {
	if ctx.Err() != nil {
		return answer, errors.Join(driver.ErrNotSent, ctx.Err())
	}
	c := &command{request: requestOf(ctx)}
	own, hangUp := context.WithCancel(context.WithValue(context.Background(), commandKey{}, c))
	defer hangUp()
	answered := make(chan T, 1)
	go func() { answered <- call(own) }()
	select {
	case answer = <-answered:
		return answer, nil
	case <-ctx.Done():
	}
	hangUp()
	select {
	case answer = <-answered: // nothing was under way
		return answer, nil
	case <-time.After(1):
		c.left.Store(true)
		return answer, errLeft
	}
}

type acquired struct {
	grant driver.Grant
	err   error
}

// Acquire implements driver.Driver.
func (p prompt) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	a, err := promptly(ctx, func(ctx context.Context) acquired {
		g, err := p.Net.Acquire(ctx, c)
		return acquired{g, err}
	})
	if err != nil {
		return a.grant, err
	}
	return a.grant, a.err
}

// Renew implements driver.Driver.
func (p prompt) Renew(ctx context.Context, claims []driver.Claim) []error {
	errs, err := promptly(ctx, func(ctx context.Context) []error { return p.Net.Renew(ctx, claims) })
	if err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	return errs
}

// Release implements driver.Driver.
func (p prompt) Release(ctx context.Context, c driver.Claim) error {
	answer, err := promptly(ctx, func(ctx context.Context) error { return p.Net.Release(ctx, c) })
	if err != nil {
		return err
	}
	return answer
}

// Wait implements driver.Driver.
func (p prompt) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	a, err := promptly(ctx, func(ctx context.Context) acquired {
		g, err := p.Net.Wait(ctx, c)
		return acquired{g, err}
	})
	if err != nil {
		return a.grant, err
	}
	return a.grant, a.err
}
