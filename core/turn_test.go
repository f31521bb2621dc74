package core_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// call is an Acquire on a goroutine of its own.
type call struct {
	*bench
	cancel context.CancelFunc
	over   chan struct{}
	lease  *core.Lease
	err    error
}

// call begins an Acquire of "name", and lets it get as far as it can.
func (b *bench) call(l *core.Locker, opts ...core.Option) *call {
	b.Helper()
	return b.callWith(b.Context(), l, opts...)
}

func (b *bench) callWith(ctx context.Context, l *core.Locker, opts ...core.Option) *call {
	return b.goes(ctx, func(ctx context.Context) (*core.Lease, error) { return l.Acquire(ctx, "name", opts...) })
}

// coming is a call that comes with a hand-off.
func (b *bench) coming(l *core.Locker, h core.Handoff) *call {
	return b.goes(b.Context(), func(ctx context.Context) (*core.Lease, error) { return l.Attach(ctx, h) })
}

func (b *bench) goes(ctx context.Context, get func(context.Context) (*core.Lease, error)) *call {
	ctx, cancel := context.WithCancel(ctx)
	c := &call{bench: b, cancel: cancel, over: make(chan struct{})}
	b.Cleanup(cancel)
	go func() {
		defer close(c.over)
		c.lease, c.err = get(ctx)
	}()
	synctest.Wait()
	return c
}

// granted returns the lease of a call that must have one by now.
func (c *call) granted() *core.Lease {
	c.Helper()
	synctest.Wait()
	if !c.ended() {
		c.Fatal("it still waits")
	}
	c.ok(c.err)
	return c.lease
}

// failed returns the error of a call that must have one by now.
func (c *call) failed() error {
	c.Helper()
	if !c.ended() || c.err == nil {
		c.Fatal("it still waits, or was granted")
	}
	return c.err
}

func (c *call) ended() bool {
	synctest.Wait()
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// queue has n calls of this process, the first of which has the name by now, with fences
// for those behind it.
func (b *bench) queue(n int, opts ...core.Option) (*core.Lease, []*call) {
	b.Helper()
	holder := b.acquire(b.other(), "name")
	calls := make([]*call, n)
	for i := range calls {
		calls[i] = b.call(b.locks, opts...)
	}
	return b.served(holder, calls[0]), calls[1:]
}

// served returns the lease that w gets once holder is released, with fences for those who are
// behind it. The first renewal is answered, so turns can begin.
func (b *bench) served(holder *core.Lease, w *call) *core.Lease {
	b.Helper()
	time.Sleep(driver.Recheck(ttl) + time.Millisecond) // for the next round, which knows of them
	b.ok(holder.Release(b.Context()))
	b.eventually("the first turn", w.ended)
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	return w.granted()
}

// free fails the test unless another process can have the name right now.
func (b *bench) free() {
	b.Helper()
	b.ok(b.acquire(b.other(), "name").Release(b.Context()))
}

func TestAWaiterOfThisProcessTakesTheNextTurnWithoutACommand(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x, waiting := b.queue(5)
		sent := b.commands()
		for _, w := range waiting {
			ctx := x.Context()
			y := turnAfter(x, w)
			if ctx.Err() == nil || y.Fence() != x.Fence()+1 {
				b.Errorf("the context of the earlier turn: %v; fence %d after %d", ctx.Err(), y.Fence(), x.Fence())
			}
			b.ok(y.Err())
			x = y
		}
		b.sent(sent)
		b.ok(x.Check(b.Context()))
		b.ok(x.Release(b.Context()))
		b.free()
	})
}

// Orderly says so if more fences than one are asked for.
func TestReadersAndABackendThatReservesNoFencesHaveNoTurns(t *testing.T) {
	t.Parallel()
	each(t, map[string][]core.Option{"readers": {core.WithShared()}, "a backend": nil}, func(b *bench, opts []core.Option) {
		locks := b.locker(&hooked{Driver: b.store, can: func(can *driver.Capabilities) { can.Block = opts != nil }})
		x := b.acquire(b.locks, "name")
		for _, w := range []*call{b.call(locks, opts...), b.call(locks, opts...)} {
			x = b.served(x, w)
		}
		b.ok(x.Release(b.Context()))
	})
}

// The reply to a command of the wait was lost, so it may be executed yet.
func TestWhatIsInDoubtIsReleasedAndAskedForAgain(t *testing.T) {
	t.Parallel()
	type row struct {
		opts    []core.Option
		before  lab.Fate // of the first wait
		doubt   func(b *bench)
		release error
	}
	renewal := func(fate lab.Fate) func(b *bench) {
		return func(b *bench) {
			b.link.Next(lab.OpRenew, fate)
			b.eventually("a renewal", func() bool { return b.link.Calls(lab.OpRenew) == 2 })
			time.AfterFunc(time.Millisecond, func() { b.link.Deliver() })
		}
	}
	after := func(d time.Duration) func(b *bench) { return func(*bench) { time.Sleep(d) } }
	each(t, map[string]row{
		"less than a third is left":  {opts: []core.Option{core.WithoutRenewal()}, doubt: after(ttl * 3 / 4)},
		"a renewal failed":           {doubt: renewal(lab.Refused)},
		"a renewal is under way":     {doubt: renewal(lab.HeldBack)},
		"an acquire went unanswered": {before: lab.ReplyReset, doubt: after(0)},
		"the hold was too long": {
			opts: []core.Option{core.WithMaxHold(2 * time.Millisecond)}, doubt: after(3 * time.Millisecond), release: core.ErrLost,
		},
	}, func(b *bench, r row) {
		b.link.Next(lab.OpWait, r.before)
		x, waiting := b.queue(2, r.opts...)
		r.doubt(b)
		sent := b.link.Calls(lab.OpRelease)
		b.is(x.Release(b.Context()), r.release)
		b.ok(waiting[0].granted().Err())
		b.sent(sent+1, lab.OpRelease)
		b.ok(waiting[0].lease.Release(b.Context()))
		b.free()
	})
}

func TestAnEndedTurnStaysReleasedWhateverBecomesOfTheHold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		asked, waiting := b.queue(4)
		before := asked.Context()
		silent := turnAfter(asked, waiting[0])
		atEnd := silent.ValidUntil()
		z := turnAfter(silent, waiting[1])
		time.Sleep(period + time.Second) // renewed
		if !z.ValidUntil().After(atEnd) {
			b.Error("not renewed")
		}
		b.store.Lose("name") // an operator deletes it
		b.is(z.Check(b.Context()), core.ErrLost)
		b.reason(z, core.ReasonTaken)
		sent := b.commands()
		for _, x := range []*core.Lease{asked, silent} {
			for _, err := range []error{x.Err(), x.Check(b.Context()), core.Confirm(x.Context())} {
				b.is(err, core.ErrReleased)
			}
			b.ok(x.Release(b.Context()))
			b.ok(x.Finish(b.Context(), nil))
			b.is(context.Cause(x.Context()), context.Canceled)
			b.isNot(context.Cause(x.Context()), core.ErrLost)
			b.validFor(x, atEnd, 0)
		}
		b.is(context.Cause(before), context.Canceled)
		b.sent(sent) // none of what is over
	})
}

// turnAfter ends x, and returns the turn that w gets by it.
func turnAfter(x *core.Lease, w *call) *core.Lease {
	w.Helper()
	w.ok(x.Release(w.Context()))
	return w.granted()
}

func TestWhoWantsSomethingElseAsksForItself(t *testing.T) {
	t.Parallel()
	type row struct {
		opts []core.Option
		turn bool
	}
	each(t, map[string]row{
		"the same":       {nil, true},
		"another TTL":    {[]core.Option{core.WithTTL(ttl / 2)}, true}, // a renewal carries it
		"another period": {[]core.Option{core.WithRenewEvery(time.Second)}, true},
		"a label":        {[]core.Option{core.WithLabel("mine")}, false},
		"no renewal":     {[]core.Option{core.WithoutRenewal()}, false},
		"a dedup marker": {[]core.Option{core.WithDedup(time.Hour)}, false},
	}, func(b *bench, r row) {
		holder := b.acquire(b.other(), "name")
		opts := slices.Concat(r.opts, []core.Option{core.WithTemplate("t"), core.WithWait(time.Minute), core.WithoutReentry()})
		first, second, third := b.call(b.locks), b.call(b.locks, opts...), b.call(b.locks)
		x := b.served(holder, first)
		sent := b.commands()
		y := turnAfter(x, second)
		if turn := b.commands() == sent; turn != r.turn {
			b.Errorf("a turn: %v", turn)
		}
		b.ok(turnAfter(y, third).Release(b.Context()))
		b.free()
	})
}

func TestATurnWithAShorterMaxHoldEndsByIt(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		first, second := b.call(b.locks), b.call(b.locks, core.WithMaxHold(time.Second/10))
		ctx := turnAfter(b.served(holder, first), second).Context()
		b.took(time.Second/10, 0, func() { <-ctx.Done() })
		b.is(context.Cause(ctx), core.ErrLost)
	})
}

// busy is the context of a caller who, once it stands in line, does not look for a while: so
// what it is called up with, and what else happens, come at the same time.
type busy struct {
	context.Context
	once *sync.Once
	d    time.Duration
}

func (c busy) Done() <-chan struct{} {
	c.once.Do(func() { time.Sleep(c.d) })
	return c.Context.Done()
}

func TestCloseTakesBackATurnThatNobodyHasSeen(t *testing.T) {
	t.Parallel()
	for _, hold := range []time.Duration{0, tired} {
		for range 10 { // it may see either first
			virtual(t, func(b *bench) {
				holder := b.acquire(b.other(), "name")
				first := b.call(b.locks)
				w := b.goes(b.Context(), func(ctx context.Context) (*core.Lease, error) {
					return b.locks.Acquire(busy{ctx, new(sync.Once), 2 * tired}, "name")
				})
				b.ok(holder.Release(b.Context()))
				x := first.granted()
				time.Sleep(hold)
				b.ok(x.Release(b.Context()))
				b.took(2*tired-hold, 0, func() { b.ok(b.locks.Close(b.Context())) })
				<-w.over
				b.is(w.err, core.ErrClosed)
				b.free()
			})
		}
	}
}

// Whoever comes while the name is being released asks for it once that is over.
func TestWhoComesDuringAReleaseIsServed(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var locks *core.Locker
		var next *call
		locks = b.locker(&hooked{Driver: b.store, release: func(ctx context.Context, c driver.Claim) error {
			if next == nil {
				next = b.call(locks)
			}
			return b.store.Release(ctx, c)
		}})
		ended, cancel := context.WithCancel(b.Context())
		cancel()
		for _, ctx := range []context.Context{b.Context(), ended} {
			next = nil
			b.ok(b.acquire(locks, "name").Release(ctx))
			b.ok(next.granted().Release(b.Context()))
		}
	})
}

func TestATurnAfterCompletedWorkIsDone(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		derived, err := b.locks.With(core.WithDedup(time.Hour))
		b.ok(err)
		holder := b.acquire(b.other(), "name")
		first, second, third := b.call(derived), b.call(derived), b.call(b.locks)
		b.ok(holder.Release(b.Context()))
		b.ok(first.granted().Complete(b.Context()))
		b.is(second.failed(), core.ErrDuplicate)
		b.ok(third.granted().Release(b.Context()))
		b.free()
	})
}
