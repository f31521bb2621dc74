package drivertest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Orderly returns a backend that passes every call on to d, and tells complain of each that a backend need
// not expect: what the driver package says that a backend may rely on. Put it between core and a backend in
// tests of core.
func Orderly(d driver.Driver, complain func(format string, args ...any)) driver.Driver {
	return &order{Driver: d, can: d.Capabilities(), complain: complain, tokens: make(map[string]*conduct)}
}

type order struct {
	driver.Driver
	can      driver.Capabilities
	complain func(format string, args ...any)

	mu     sync.Mutex // protects tokens
	tokens map[string]*conduct
}

// conduct is what has become of a token.
type conduct struct {
	name      string
	ttl, keep time.Duration   // as it was last asked for
	open      int             // commands under way, and those without an answer
	asks      context.Context // of the Acquire or Wait under way
	over      bool            // it was released
}

// Unwrap returns the backend.
func (o *order) Unwrap() driver.Driver { return o.Driver }

// Close implements driver.Closer.
func (o *order) Close(ctx context.Context) error {
	if c, ok := o.Driver.(driver.Closer); ok {
		return c.Close(ctx)
	}
	return nil
}

// Acquire implements driver.Driver.
func (o *order) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	end := o.asks(ctx, "acquire", c)
	g, err := o.Driver.Acquire(ctx, c)
	end(err)
	return g, err
}

// Wait implements driver.Driver.
func (o *order) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	end := o.asks(ctx, "wait", c)
	g, err := o.Driver.Wait(ctx, c)
	end(err)
	return g, err
}

// Renew implements driver.Driver.
func (o *order) Renew(ctx context.Context, claims []driver.Claim) []error {
	if len(claims) > driver.MaxRenewals {
		o.complain("renew: %d claims", len(claims))
	}
	ends := make([]func(error), len(claims))
	for i, c := range claims {
		ends[i] = o.begins(ctx, "renew", c, c.TTL > 0)
	}
	errs := o.Driver.Renew(ctx, claims)
	if len(errs) != len(claims) {
		o.complain("renew: %d answers to %d claims", len(errs), len(claims)) // the backend's own fault
		return errs
	}
	for i, err := range errs {
		ends[i](err)
	}
	return errs
}

// Release implements driver.Driver.
func (o *order) Release(ctx context.Context, c driver.Claim) error {
	if c.Keep > 0 && !o.can.Keep {
		o.complain("release %q: Keep", c.Name)
	}
	end := o.begins(ctx, "release", c, false)
	err := o.Driver.Release(ctx, c)
	end(err)
	if driver.Explain(err).Kind != driver.NotDone {
		o.mu.Lock()
		o.tokens[c.Token].over = true
		o.mu.Unlock()
	}
	return err
}

// asks notes the beginning of an Acquire or Wait, and returns what notes its end.
func (o *order) asks(ctx context.Context, what string, c driver.Claim) (end func(error)) {
	switch {
	case c.Keep > c.TTL:
		o.complain("%s %q: Keep is %s with a TTL of %s", what, c.Name, c.Keep, c.TTL)
	case c.TTL <= 0:
		o.complain("%s %q: a TTL of %s", what, c.Name, c.TTL)
	}
	ended := o.begins(ctx, what, c, true)
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.tokens[c.Token]
	if t.asks != nil && t.asks.Err() == nil {
		o.complain("%s %q: it asks already", what, c.Name)
	}
	t.asks = ctx
	return func(err error) {
		o.mu.Lock()
		if t.asks == ctx {
			t.asks = nil
		}
		o.mu.Unlock()
		ended(err)
	}
}

// begins notes the beginning of a command. sets says that it sets the TTL.
func (o *order) begins(ctx context.Context, what string, c driver.Claim, sets bool) (end func(error)) {
	if fault := o.beyond(c); fault != "" {
		o.complain("%s %q: %s", what, c.Name, fault)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		o.complain("%s %q: without a deadline", what, c.Name)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.tokens[c.Token]
	if t == nil {
		t = &conduct{name: c.Name, ttl: c.TTL, keep: c.Keep}
		o.tokens[c.Token] = t
	}
	switch {
	case t.name != c.Name:
		o.complain("%s %q: its token is one for %q", what, c.Name, t.name)
	case t.over && what != "release":
		o.complain("%s %q: after its release", what, c.Name)
	case sets && t.open > 0 && (t.ttl != c.TTL || what != "renew" && t.keep != c.Keep):
		o.complain("%s %q: a TTL of %s, while a command with %s is open", what, c.Name, c.TTL, t.ttl)
	}
	if sets {
		t.ttl = c.TTL
		if what != "renew" {
			t.keep = c.Keep
		}
	}
	t.open++
	return func(err error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if !driver.Explain(err).Open() {
			t.open--
		}
	}
}

// beyond says what of c goes beyond what the backend can do, or what any can.
func (o *order) beyond(c driver.Claim) string {
	for _, row := range []struct {
		is   bool
		what string
	}{
		{c.Name == "" || c.Token == "", "no name or no token"},
		{o.can.MaxName > 0 && len(c.Name) > o.can.MaxName, fmt.Sprintf("a name of %d bytes", len(c.Name))},
		{len(c.Label) > driver.MaxLabel, fmt.Sprintf("a label of %d bytes", len(c.Label))},
		{c.TTL%time.Millisecond != 0 || c.TTL != 0 && c.TTL < o.can.MinTTL, fmt.Sprintf("a TTL of %s", c.TTL)},
		{c.Shared() && !o.can.Shared, "a shared claim"},
		{c.Limit > 1 && !o.can.Limit || c.Limit < driver.Readers, fmt.Sprintf("a limit of %d", c.Limit)},
		{c.Fences > 1 && (!o.can.Block || !c.Exclusive()), fmt.Sprintf("%d fences", c.Fences)},
		{c.Fences > driver.MaxFences, fmt.Sprintf("%d fences", c.Fences)},
		{c.Dedup > 0 && !o.can.Dedup, "Dedup"},
		{c.Handoff != "" && (!o.can.Detach || len(c.Handoff) != driver.HandoffWidth), "a hand-off"},
	} {
		if row.is {
			return row.what
		}
	}
	return ""
}
