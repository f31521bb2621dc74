package httpmw

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

const (
	defaultBudget = 30 * time.Second
	firstBackoff  = 100 * time.Millisecond
	lastBackoff   = 2 * time.Second
)

// Transport is the client's half: a RoundTripper that sends a request again that a service with this
// package's middleware has refused. Its zero value works:
//
//	client := &http.Client{Transport: &httpmw.Transport{}}
//
// It retries the types [TypeHeld], [TypeUnavailable] and [TypeInterrupted], of any method, because they
// say that the request was not started: so nothing is done twice. It never retries what was started or
// may have been: an error of the connection, [TypeLost], a Problem with Started, or another service's
// 503. Nor does it retry what is done already ([TypeDuplicate]).
//
// Before the next try it waits as long as Retry-After says, and up to half as long again. It gives up
// if the request's context, or the budget, would end before: the response is then the service's last
// answer. If the context ends during the wait, the error is the context's.
//
// A request with a body is retried only if it has GetBody, which [http.NewRequest] sets for buffers and
// strings. A redirected or proxied answer is taken as the service's own. So do not use a Transport
// behind a gateway that does work of its own before it passes an answer on.
type Transport struct {
	// Base sends the requests. Nil means [http.DefaultTransport].
	Base http.RoundTripper

	// Budget limits the time from the first try to the beginning of the last one. Zero means 30 s, the
	// default. A negative budget means no retries.
	Budget time.Duration

	// FenceOf names the lock whose fence goes along, in [FenceHeader]. If it returns "", none does. If
	// the request's context is not under that lock, or its lease has no fence, the request fails with
	// fence.ErrInvalid and is not sent.
	//
	// By default, nil, it is the innermost lock of the context, if its lease has a fence. A handler
	// that holds one lock inside another should say which. A request that has the header already
	// keeps it.
	FenceOf func(*http.Request) string
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	first, err := t.fenced(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as every RoundTripper has to
		}
		return nil, err
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	began, next := time.Now(), first
	for try := 0; ; try++ {
		res, err := base.RoundTrip(next)
		if err != nil {
			return nil, err
		}
		wait, retry := t.retry(first, res, try, began)
		if !retry {
			return res, nil
		}
		if next, err = rewound(first); err != nil {
			return res, nil //nolint:nilerr // it cannot be sent again: the answer stands
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxProblem)) // so that the connection is of use again
		_ = res.Body.Close()
		if err := sleep(r.Context(), wait); err != nil {
			if next.Body != nil {
				_ = next.Body.Close()
			}
			return nil, err
		}
	}
}

// retry says whether, and when, the request may be sent again.
func (t *Transport) retry(r *http.Request, res *http.Response, try int, began time.Time) (wait time.Duration, retry bool) {
	if r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return 0, false
	}
	p := ParseProblem(res)
	if p == nil || p.Started || p.Type != TypeHeld && p.Type != TypeUnavailable && p.Type != TypeInterrupted {
		return 0, false
	}
	if wait = p.RetryAfter; wait == 0 {
		wait = min(firstBackoff<<min(try, 10), lastBackoff)
	}
	wait += rand.N(wait/2 + 1) //nolint:gosec // G404: it spreads retries
	at := time.Now().Add(wait)
	if deadline, ok := r.Context().Deadline(); ok && !at.Before(deadline) {
		return 0, false
	}
	budget := t.Budget
	if budget == 0 {
		budget = defaultBudget
	}
	return wait, at.Sub(began) <= budget
}

// rewound returns a copy of r with a body that was not read yet.
func rewound(r *http.Request) (*http.Request, error) {
	next := r.Clone(r.Context())
	if r.GetBody == nil {
		return next, nil
	}
	body, err := r.GetBody()
	next.Body = body
	return next, err
}

// fenced returns r with its fence. A RoundTripper must not change the request itself.
func (t *Transport) fenced(r *http.Request) (*http.Request, error) {
	if r.Header.Get(FenceHeader) != "" {
		return r, nil
	}
	name := ""
	if t.FenceOf != nil {
		name = t.FenceOf(r)
	} else if x, ok := core.FromContext(r.Context()); ok && x.Fence() != 0 {
		name = x.Name()
	}
	if name == "" {
		return r, nil
	}
	c := r.Clone(r.Context())
	if c.Header == nil {
		c.Header = make(http.Header)
	}
	return c, SetFence(r.Context(), name, c.Header)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
