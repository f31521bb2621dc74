package claim

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/sweep"
)

// Desk sends what claims ask for.
type Desk struct {
	Port *call.Port

	sweeper *sweep.Sweeper
	hangs   atomic.Int32  // clean-ups that were left behind and have not returned
	firsts  chan struct{} // full while many are under way that the sweeper has not begun
}

// NewDesk returns a Desk that sends through p.
func NewDesk(p *call.Port) *Desk {
	return &Desk{Port: p, sweeper: sweep.New(p.Tasks.Go), firsts: make(chan struct{}, sweep.Many)}
}

// New returns a claim whose commands the desk sends.
func (d *Desk) New(name string) *Claim {
	c := new(Claim)
	c.Begin(name, d)
	return c
}

// Close makes clean-up end soon: somebody waits for its end.
func (d *Desk) Close() { d.sweeper.Close() }

// Acquire asks for w, from now on, again and again until there is an answer, for bound at most.
func (d *Desk) Acquire(ctx context.Context, c *Claim, w *Wish, fences int, now clock.Reading, bound time.Duration) call.Reply {
	r := call.Reply{Now: now}
	tries := d.Port.Tries(now, bound)
	for within := tries.First(ctx); within > 0; within = tries.Next(ctx, &r) {
		r = d.send(ctx, call.Acquire, c, c.Ask(call.Acquire, w, fences), r.Now, within)
		if call.Panicked(r.Err) {
			break // its caller shall know
		}
	}
	return r
}

// Wait stands in the queue for w, for one round. heard is told of each answer that is no grant. Where a Wait hangs, it polls instead.
func (d *Desk) Wait(ctx context.Context, c *Claim, w *Wish, fences int, round time.Duration, heard func(*driver.Held)) call.Reply {
	if c.Hangs() || d.Port.Crowded() {
		return d.poll(ctx, c, w, fences, round, heard)
	}
	now := d.Port.Clock.Read()
	ask := c.Ask(call.Wait, w, fences)
	ask.Heard = heard
	return d.send(ctx, call.Wait, c, ask, now, round)
}

// poll is Wait by attempts. Each of them may hang, too.
func (d *Desk) poll(ctx context.Context, c *Claim, w *Wish, fences int, round time.Duration, heard func(*driver.Held)) (r call.Reply) {
	over, cancel := context.WithTimeout(ctx, round)
	defer cancel()
	ask := driver.Claim{TTL: w.Lifetime(), Heard: heard}
	_, _ = driver.Poll(over, ask, func(context.Context, driver.Claim) (driver.Grant, error) { // what it returns is what r is
		now := d.Port.Clock.Read()
		if r = (call.Reply{Err: call.ErrHung, Asked: now, Now: now}); !d.Port.Full() {
			r = d.send(ctx, call.Acquire, c, c.Ask(call.Acquire, w, fences), now, driver.Patience(w.TTL))
		}
		return r.Grant, r.Err
	})
	return r
}

// Release sends one release of a hold.
func (d *Desk) Release(ctx context.Context, r driver.Claim, now clock.Reading, within time.Duration) call.Reply {
	return d.Port.Send(ctx, call.Release, r, now, within, nil)
}

func (d *Desk) send(ctx context.Context, op call.Op, c *Claim, ask driver.Claim, now clock.Reading, within time.Duration) call.Reply {
	r := d.Port.Send(ctx, op, ask, now, within, c)
	c.Answer(r.Now.Awake(), said(r))
	if op == call.Wait && errors.Is(r.Err, call.ErrNoAnswer) {
		c.LeftBehind(r.Now.Awake())
	}
	return r
}

// said is what the service has said. If the grant was made without it, it may still execute the command, if that was sent.
func said(r call.Reply) driver.Meaning {
	switch {
	case r.Grant.Degraded == "":
		return r.Meaning()
	case errors.Is(r.Grant.Outage, driver.ErrNotSent):
		return driver.Meaning{Kind: driver.NotDone}
	default:
		return driver.Meaning{}
	}
}

// Late is for the outcome of a command whose caller has gone. If many come at once, the sweeper does what there is to do.
func (c *Claim) Late(op call.Op, r call.Reply) {
	if r.Grant.Degraded != "" {
		own := new(Claim)
		c.Degraded(r.Grant, own)
		newCleaner(own).clean(first)
	}
	if c.Outcome(op, said(r)) && c.desk.enter() {
		defer c.desk.leave()
		newCleaner(c).clean(first)
	}
}

// Clean does what x says behind c, in the background.
func (d *Desk) Clean(c *Claim, x Cleanup) {
	switch {
	case x == Cleanup{}: // c may be none, or own the name by MinHold
	case d.enter():
		d.Port.Tasks.Go(func() {
			defer d.leave()
			d.CleanNow(c, x)
		})
	default:
		k := newCleaner(c)
		d.sweep(k, k.atLeast(x.For), 0)
	}
}

// first is how long the first release behind a claim may take. The sweeper sends further ones.
const first = 750 * time.Millisecond

// enter is for a release that does not wait for the sweeper. There are few at once: in an outage thousands of claims are dropped.
func (d *Desk) enter() bool {
	select {
	case d.firsts <- struct{}{}:
		return true
	default:
		return false
	}
}

func (d *Desk) leave() { <-d.firsts }

// CleanNow is Clean for somebody who waits until the first release was answered, or has had its time.
func (d *Desk) CleanNow(c *Claim, x Cleanup) {
	k := newCleaner(c)
	if x.Once && k.clean(first) != sweep.Answered {
		x.For = k.atLeast(x.For)
	}
	d.sweep(k, x.For, sweep.First)
}

func (d *Desk) sweep(k *cleaner, lasts, after time.Duration) {
	if lasts > 0 {
		d.sweeper.Add(sweep.Task{Clean: k.clean, Open: k.claim.Doubtful, After: after, For: lasts})
	}
}

// cleaner is the repeated clean-up behind one claim. Only one goroutine at a time uses last.
type cleaner struct {
	desk  *Desk
	claim *Claim
	last  sweep.Outcome
	hangs atomic.Int32 // its calls that were left behind and have not returned
}

func newCleaner(c *Claim) *cleaner { return &cleaner{desk: c.desk, claim: c, last: sweep.Unsent} }

// atLeast is for how long to clean up, if it is for d and nobody has answered yet.
func (x *cleaner) atLeast(d time.Duration) time.Duration {
	return max(d, driver.PlaceLife(x.claim.Cleaner().TTL))
}

// clean cleans up once. There are clients whose calls can outlive their time. Each cleaner then has at most
// one call that hangs, and all together have few. Cleaners that got no answer before have the fewest, so that
// they do not keep the others from cleaning up.
func (x *cleaner) clean(within time.Duration) sweep.Outcome {
	most := int32(sweep.Many)
	if x.last == sweep.Silent {
		most = sweep.Few
	}
	if x.hangs.Load() > 0 || x.desk.hangs.Load() >= most {
		return sweep.Unsent
	}
	p, ask, settles := x.desk.Port, x.claim.Cleaner(), x.claim.Settles()
	r := p.Send(context.Background(), call.Release, ask, p.Clock.Read(), min(within, driver.Patience(ask.TTL)), x)
	if errors.Is(r.Err, call.ErrNoAnswer) {
		x.hung(1)
	}
	m := r.Meaning()
	x.claim.Cleaned(m, settles)
	x.last = sweep.Silent
	if m.Answered() {
		x.last = sweep.Answered
	}
	return x.last
}

// Late is for a call that was left behind.
func (x *cleaner) Late(call.Op, call.Reply) { x.hung(-1) }

func (x *cleaner) hung(n int32) {
	x.hangs.Add(n)
	x.desk.hangs.Add(n)
}
