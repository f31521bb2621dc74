// Package oldadapter makes a backend on the old contract one on the new one, so that backends can move one
// by one. It goes with the last of them.
package oldadapter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	old "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// New returns d as a backend on the new contract. A token is its place in d's queue. Wait asks, and then
// stands in the queue for one [driver.Recheck] at a time, with an offer where d takes them.
func New(d old.Driver) *Driver { return &Driver{old: d} }

// Driver is a backend on the old contract, as one on the new contract.
type Driver struct {
	old    old.Driver
	offers atomic.Uint64
	made   sync.Map // the last offer, by the token that has made it and was neither granted nor released
	queued sync.Map // the tokens that were sent into the queue, and neither granted nor released
}

var _ driver.Closer = (*Driver)(nil)

// Old is the backend inside.
func (a *Driver) Old() old.Driver { return a.old }

// Capabilities implements driver.Driver.
func (a *Driver) Capabilities() driver.Capabilities {
	can := a.old.Capabilities()
	_, queue := a.old.(old.Queuer)
	is := driver.Capabilities{
		Backend: can.Backend, Punctual: can.Punctual, Hears: queue, Queue: queue,
		Fence: can.Fence, Block: can.Block, Shared: can.Shared, Limit: can.Limit, Dedup: can.Dedup, Keep: can.Keep, Detach: can.Detach,
		MinTTL: can.MinTTL, MaxName: can.MaxName,
	}
	if v, ok := a.old.(old.Validator); ok {
		is.Err = v.Validate()
	}
	if l, ok := a.old.(old.Locator); ok && is.Err == nil {
		is.Location = l.Location()
	}
	return is
}

// Close implements driver.Closer.
func (a *Driver) Close(ctx context.Context) error {
	if c, ok := a.old.(old.IdleCloser); ok {
		return c.CloseIdle(ctx)
	}
	return nil
}

// Acquire implements driver.Driver.
func (a *Driver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := a.old.Acquire(ctx, Claim(c))
	return Grant(g), err
}

// Wait implements driver.Driver.
func (a *Driver) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	q, ok := a.old.(old.Queuer)
	if !ok {
		return driver.Poll(ctx, c, a.Acquire)
	}
	var held *driver.Held
	for _, queued := a.queued.Load(c.Token); ; queued = true {
		if held != nil && over(ctx) {
			return driver.Grant{}, held
		}
		g, refused, err := a.ask(ctx, c)
		if refused == nil {
			return g, open(err, queued)
		}
		held = refused
		c.Tell(held)
		pause := driver.Recheck(c.TTL)
		if held.Remaining > 0 {
			pause = min(pause, held.Remaining+time.Millisecond)
		}
		g, granted, err := a.stand(ctx, q, c, pause)
		answered := err == nil || err == context.Canceled || err == context.DeadlineExceeded //nolint:errorlint // old.Queuer: as they are
		switch {
		case granted:
			a.queued.Delete(c.Token)
			return g, nil
		case !answered:
			return driver.Grant{}, open(err, queued)
		case over(ctx):
			return driver.Grant{}, held
		}
	}
}

// open is err, of a command that is not the first if others may have put the token into the queue.
func open(err error, queued bool) error {
	if queued && errors.Is(err, driver.ErrNotSent) {
		return driver.UnknownOutcome(err)
	}
	return err
}

// over says whether ctx has ended. A client may say so before ctx does.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) <= 0
}

// ask is one attempt of Wait.
func (a *Driver) ask(ctx context.Context, c driver.Claim) (driver.Grant, *driver.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, driver.Patience(c.TTL))
	defer cancel()
	asked := time.Now()
	at := Claim(c)
	at.Place = c.Token // which keeps it alive, and lets some backends share what they see with the wait that follows
	was, err := a.old.Acquire(ctx, at)
	g := Grant(was)
	if err == nil {
		g.Asked = asked
		a.queued.Delete(c.Token)
	}
	held, _ := errors.AsType[*driver.Held](err)
	return g, held, err
}

// stand waits in the queue, for so long, to be granted the name or told to ask.
func (a *Driver) stand(ctx context.Context, q old.Queuer, c driver.Claim, pause time.Duration) (driver.Grant, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	a.queued.Store(c.Token, nil)
	at := Claim(c)
	at.Place = c.Token
	o, ok := q.(old.Offerer)
	if !ok || !c.Plain() {
		if number, made := a.made.Load(c.Token); made { // it must not be granted any more
			withdraws := at
			withdraws.Offer, _ = number.(uint64)
			if err := a.old.Release(ctx, withdraws); err != nil && !errors.Is(err, old.ErrNotOwner) {
				return driver.Grant{}, false, err
			}
			a.made.Delete(c.Token)
		}
		return driver.Grant{}, false, q.Wait(ctx, at)
	}
	at.Offer = a.offers.Add(1)
	a.made.Store(c.Token, at.Offer)
	asked := time.Now()
	offered, granted, err := o.Offer(ctx, at)
	g := Grant(offered)
	g.TTL, g.Asked = driver.PlaceLife(c.TTL), asked
	return g, granted, err
}

// Renew implements driver.Driver.
func (a *Driver) Renew(ctx context.Context, claims []driver.Claim) []error {
	all := make([]old.Claim, len(claims))
	for i, c := range claims {
		all[i] = Claim(c)
	}
	return a.old.Renew(ctx, all)
}

// Release implements driver.Driver. Some old backends leave a place or something else, but not both: who owns
// the name is not in the queue. And without a place, many have a quicker way.
func (a *Driver) Release(ctx context.Context, c driver.Claim) error {
	a.made.Delete(c.Token)
	a.queued.Delete(c.Token)
	ends, leaves := Claim(c), Claim(c)
	ends.Keep, ends.Mark = c.Keep, c.Dedup > 0
	if err := a.old.Release(ctx, ends); !errors.Is(err, old.ErrNotOwner) {
		return err
	}
	leaves.Place = c.Token
	return a.old.Release(ctx, leaves)
}

// Claim is c as the old contract has it.
func Claim(c driver.Claim) old.Claim {
	return old.Claim{
		Name: c.Name, Token: c.Token, Label: c.Label, TTL: c.TTL, Shared: c.Shared(), Limit: max(0, c.Limit),
		Fences: min(c.Fences, old.MaxTurns), Scope: c.Scope, Dedup: c.Dedup, Handoff: c.Handoff,
	}
}

// Grant is g as the new contract has it.
func Grant(g old.Grant) driver.Grant {
	return driver.Grant{Fence: g.Fence, Fences: g.Fences, TTL: g.TTL, Longest: g.Longest, Limit: g.Limit}
}
