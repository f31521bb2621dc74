// Package fallback lets work go on without the lock service, and exclude other work of its own process then:
//
//	locks, err := core.New(fallback.New(redislock.New(rdb)))
//	previews, err := locks.With(core.OnUnavailable(core.LocalOnly))
//
// [Driver] is a driver around another one. It asks the service. If that answers nobody, it grants by itself, and only claims that
// allow it. Both kinds of grants of this process are in one table, so they exclude each other. These interleavings are behind the
// order of things:
//
//  1. A lease of this process from before the outage still has the name. It stays in the table until its release begins, or
//     its TTL is over, so nobody goes local beside it.
//  2. The service comes back while a degraded lease stands. Whoever wants the name finds that lease before the service is asked.
//  3. A command is under way for one call while another one goes local. If it is granted, the grant finds the degraded lease in
//     the table, and nobody gets it: its outcome is open, so core cleans up behind its token. Both look under the same mutex.
//  4. Readers, holders of a semaphore and whoever comes with a hand-off have lines of their own in core. The table does not know lines.
//  5. A call that goes local has sent commands that may still be executed. A degraded grant has a token of its own, so that core
//     cleans up behind the one that has asked, also in the service's queue.
//  6. A call is cut short by its caller's deadline, or by the end of its budget. That is no outage: only silence for as long
//     as the call itself would have been patient counts.
//  7. One call has a hiccup, or little patience, and the service answers others. Its silence counts for other calls only if nobody had an
//     answer in the meantime, and if they have no more patience. That it was refused counts once a probe is refused, too.
//  8. MaxHold has ended the trust in a lease of this process, and its work has not returned. Nobody renews it, so it stays in
//     the table for one more TTL, as it does at the service.
//  9. The service has said that the name is held, and then it is silent. The holder may be at work. So for one TTL nobody goes local.
//
// 10. A release has left the name taken, for a hand-off or for a MinHold. It stays taken here, too.
package fallback

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/tasks"
)

// Driver is a driver.Driver around another one.
type Driver struct {
	passing
	port   *call.Port // to passing, for calls that may go local: it bounds them
	outage outage
}

var (
	_ driver.Driver = (*Driver)(nil)
	_ driver.Closer = (*Driver)(nil)
)

// New returns a driver that asks d, and goes on without it if it must. It does no I/O.
func New(d driver.Driver) *Driver {
	f := &Driver{passing: passing{inner: d, table: newTable()}}
	f.port = call.New(&f.passing, clock.New(), tasks.New())
	return f
}

// Unwrap returns the driver that New was given.
func (d *Driver) Unwrap() driver.Driver { return d.inner }

// Capabilities implements driver.Driver: it can do what the other driver can, and Degrade.
func (d *Driver) Capabilities() driver.Capabilities {
	can := d.passing.Capabilities()
	can.Degrade = true
	return can
}

// Acquire implements driver.Driver.
func (d *Driver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if !c.Degrade {
		return d.passing.Acquire(ctx, c)
	}
	g, _, err := d.try(ctx, call.Acquire, c)
	return g, err
}

// Wait implements driver.Driver. If the service is silent and this process has the name, it waits for the end of that.
func (d *Driver) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if !c.Degrade {
		return d.passing.Wait(ctx, c)
	}
	for {
		g, here, err := d.try(ctx, call.Wait, c)
		if here == nil || !here.over(ctx) {
			return g, err
		}
	}
}

// hears is what a Wait of c is told with: each answer ends its silence.
func (d *Driver) hears(c driver.Claim) func(*driver.Held) {
	return func(h *driver.Held) {
		d.outage.heard(c.Token)
		c.Tell(h)
	}
}

// try asks the service once, and goes local if it answers nobody. If this process has the name, here says so.
func (d *Driver) try(ctx context.Context, op call.Op, c driver.Claim) (g driver.Grant, here *standing, err error) {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return g, nil, err
	}
	now, answers := d.port.Clock.Read(), d.answers.Load()
	if because := d.outage.stands(now.Awake(), c, answers); because != nil {
		d.probe(c)
		return d.local(c, driver.NotSent(because))
	}
	c.Heard = d.hears(c)
	d.outage.sent(c.Token, now.Awake())
	r := d.port.Send(d.within(ctx, op), op, c, now, bound(ctx, c), nil)
	m := r.Meaning()
	if m.Answered() {
		d.outage.heard(c.Token)
		return r.Grant, nil, r.Err
	}
	took, sends := d.outage.silent(c.Token, r.Now.Awake())
	early, again := slow(r.Err) && took < patience(c), !slow(r.Err) && m.Open() && sends < maxSends
	if early || m.Nobody && !slow(r.Err) { // this call alone says nothing to others
		defer d.probe(c)
	}
	if early || again || !m.Nobody || ctx.Err() == context.Canceled { // core sends again, or gives up
		return g, nil, r.Err
	}
	d.outage.proved(r.Now.Awake(), took, answers, r.Err)
	return d.local(c, r.Err)
}

// within is the context for a call of the other driver. If that is punctual, the call runs on this goroutine, whoever leaves: core may use
// ctx again once this call has returned.
func (d *Driver) within(ctx context.Context, op call.Op) context.Context {
	if op == call.Acquire && d.port.Can.Punctual {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// maxSends is how often core sends a command whose connection breaks.
const maxSends = 4

// bound is how long a call may take, so that there is time to tell core.
func bound(ctx context.Context, c driver.Claim) time.Duration {
	left := driver.Patience(c.TTL)
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	return left / 8 * 7
}

// local grants without the service, unless this process has the name.
func (d *Driver) local(c driver.Claim, because error) (driver.Grant, *standing, error) {
	token, here := d.table.local(c)
	switch {
	case token != "":
		d.outage.heard(c.Token)
		return driver.Grant{Degraded: token, Outage: because, Asked: time.Now()}, nil, nil
	case here != nil:
		c.Tell(&here.held)
		return driver.Grant{}, here, &here.held
	default: // the service has said that somebody else has it
		return driver.Grant{}, nil, because
	}
}

// Release implements driver.Driver.
func (d *Driver) Release(ctx context.Context, c driver.Claim) error {
	d.outage.heard(c.Token)
	return d.passing.Release(ctx, c)
}

// Close implements driver.Closer.
func (d *Driver) Close(ctx context.Context) error {
	err := d.port.Tasks.Wait(ctx)
	if c, ok := d.inner.(driver.Closer); ok {
		return errors.Join(err, c.Close(ctx))
	}
	return err
}

// slow says that err is silence.
func slow(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return errors.Is(err, call.ErrNoAnswer) || ok && t.Timeout()
}
