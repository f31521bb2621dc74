package grpcmw

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
)

const defaultBudget = 30 * time.Second

// ClientOption configures [UnaryClientInterceptor] and [StreamClientInterceptor].
type ClientOption interface{ apply(*caller) }

type clientOptionFunc func(*caller)

func (f clientOptionFunc) apply(c *caller) { f(c) }

// WithBudget limits the time from the first attempt of a call to the beginning of the last one. The
// default is 30 s; 0 means no retries. A negative budget makes the interceptor panic when it is made.
func WithBudget(d time.Duration) ClientOption {
	return clientOptionFunc(func(c *caller) { c.budget = d })
}

// WithFenceOf names, for each call, the lock whose fence goes along as [FenceMetadata]. If it returns
// "", none does. If the call's context is not under that lock, or its lease has no fence, the call fails
// with fence.ErrInvalid and is not sent.
//
// By default it is the innermost lock of the context, if its lease has a fence. Metadata that has a
// fence already keeps it.
func WithFenceOf(name func(ctx context.Context, fullMethod string) string) ClientOption {
	return clientOptionFunc(func(c *caller) { c.fenceOf = name })
}

// caller is the client's half, made ready.
type caller struct {
	budget  time.Duration
	fenceOf func(ctx context.Context, fullMethod string) string
}

func newCaller(opts []ClientOption) *caller {
	c := &caller{budget: defaultBudget}
	for _, o := range opts {
		if o == nil {
			panic("grpcmw: nil ClientOption")
		}
		o.apply(c)
	}
	if c.budget < 0 {
		panic(fmt.Sprintf("grpcmw: WithBudget(%s): negative", c.budget))
	}
	return c
}

// UnaryClientInterceptor sends a call again that the interceptors of a server have refused: LOCK_HELD and
// LOCK_UNAVAILABLE with the call's own method in the ErrorInfo, which says that its handler did not run.
// It never repeats what may have been done, such as a call whose connection broke.
//
// Before the next attempt it waits as long as the RetryInfo says, and up to half as long again. It gives
// up if the context, or the budget, would end before, and returns the last status. A retryPolicy of the
// service config is applied first: it stops after five attempts at most, and this goes on.
func UnaryClientInterceptor(opts ...ClientOption) grpc.UnaryClientInterceptor {
	c := newCaller(opts)
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, callOpts ...grpc.CallOption) error {
		ctx, err := c.fenced(ctx, method)
		if err != nil {
			return err
		}
		for began := time.Now(); ; {
			err := invoke(ctx, method, req, reply, cc, callOpts...)
			if err == nil || !c.pause(ctx, method, err, began) {
				return err
			}
		}
	}
}

// pause waits for the next attempt. It returns false if there should be none.
func (c *caller) pause(ctx context.Context, method string, err error, began time.Time) bool {
	i := infoOf(err)
	if i.GetMetadata()[MethodMetadata] != method || i.GetReason() != ReasonHeld && i.GetReason() != ReasonUnavailable {
		return false
	}
	wait := max(delayOf(err), time.Millisecond)
	wait += rand.N(wait/2 + 1) //nolint:gosec // G404: it spreads retries
	at := time.Now().Add(wait)
	if deadline, ok := ctx.Deadline(); ok && !at.Before(deadline) || at.Sub(began) > c.budget {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func delayOf(err error) time.Duration {
	for _, d := range status.Convert(err).Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok {
			return r.GetRetryDelay().AsDuration()
		}
	}
	return retrySoon
}

// fenced returns ctx with the fence that goes along.
func (c *caller) fenced(ctx context.Context, method string) (context.Context, error) {
	if hasFence(ctx) {
		return ctx, nil
	}
	name := ""
	if c.fenceOf != nil {
		name = c.fenceOf(ctx, method)
	} else if x, ok := core.FromContext(ctx); ok && x.Fence() != 0 {
		name = x.Name()
	}
	if name == "" {
		return ctx, nil
	}
	return SetFence(ctx, name)
}
