package contend

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
)

// Guest is one call that wants a hold. Its methods are called on its own goroutine.
type Guest interface {
	// Gone is why the call must not go on; nil if it may. Poke says that it may have another answer.
	Gone() error
	// Until is closed when Gone may have another answer without a Poke. It is nil if only the end of the call's ctx can change it.
	Until() <-chan struct{}
	// Heard takes the outcome of an attempt of the call's own.
	Heard(r call.Reply)
	// Waits says that the call waits from now on, and who of this process has the name, or nil.
	Waits(here *hold.Hold)
	// Long says, once, that the call has waited for long.
	Long()
	// Look has the call look at its line. It says whether anything is known of the name.
	Look() (known bool)
}

// Call is what a call wants, and for how long.
type Call struct {
	Want   *hold.Want
	Budget time.Duration // for which it waits at most
	Long   clock.Awake   // when Guest.Long is called
	Now    clock.Reading // when it began
}

// Forever is a budget without end.
const Forever time.Duration = math.MaxInt64

// ErrBudget is the end of a call's budget.
var ErrBudget = errors.New("contend: the budget is over")

// Get gets a hold for g. The error is g's own from Gone, *driver.Held, what the driver says, ErrSilent or ErrBudget. The hold may have come as
// the call left: whoever must not go on by then gives it back.
func (r *Room) Get(ctx context.Context, x Call, g Guest) (*hold.Hold, error) {
	c, ok := r.callers.Get().(*Caller)
	if !ok {
		c = new(Caller)
	}
	c.begin(&r.Place, Waiting{x.Want, x.Now.Awake(), x.Long}, x.Budget == 0)
	h, err := r.get(ctx, c, x.Budget, x.Now, g)
	c.Want, c.waiter.Of.Want, c.hold, c.line = nil, nil, nil, nil // it keeps nothing alive
	r.callers.Put(c)
	return h, err
}

func (r *Room) get(ctx context.Context, c *Caller, budget time.Duration, now clock.Reading, g Guest) (*hold.Hold, error) {
	for s := c.Next(now.Awake()); ; {
		r.Do(s)
		switch s.Do {
		case Send:
			reply := r.Desk.Acquire(ctx, s.Claim, &c.Want.Wish, s.Fences, now, s.For)
			g.Heard(reply)
			s = c.Answered(reply, g.Gone())
		case Listen:
			g.Waits(s.Hold)
			s = r.listen(ctx, c, budget, g)
		case Watch:
			s = r.watch(ctx, s, g)
		case Over:
			return s.Hold, s.Err
		default:
			now = r.Port.Clock.Read()
			s = c.Next(now.Awake())
		}
	}
}

// after fires when a call that began with c has waited for d. It is nil for Forever. Give it back with spare.
func (r *Room) after(c *Caller, d time.Duration) *time.Timer {
	if d == Forever {
		return nil
	}
	d -= r.Port.Clock.Now().Sub(c.Began)
	if t, ok := r.timers.Get().(*time.Timer); ok {
		t.Reset(d)
		return t
	}
	return time.NewTimer(d)
}

func (r *Room) spare(t *time.Timer) {
	if t != nil {
		t.Stop()
		r.timers.Put(t)
	}
}

// fired is t's channel; nil, which is never ready, if there is none.
func fired(t *time.Timer) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C
}

// listen waits for a word of the line. What all calls share, such as the end of the room, is no channel of its select: it comes as a
// word, since thousands can wait.
func (r *Room) listen(ctx context.Context, c *Caller, budget time.Duration, g Guest) Step {
	over, last := r.after(c, budget), false
	defer func() { r.spare(over) }()
	r.long.by(c.Long)
	if err := g.Gone(); err != nil { // whoever pokes may have come before the call was in its line
		return c.leave(err)
	}
	var changed <-chan struct{}
	for until := g.Until(); ; {
		select {
		case w := <-c.Words():
			if !w.Look {
				return c.Told(w)
			}
		case <-fired(over):
			if last {
				return c.leave(ErrSilent)
			}
			over, last = r.after(c, driver.Patience(c.Want.TTL)), true
		case <-changed:
		case <-ctx.Done():
			g.Look()
			return c.leave(g.Gone())
		case <-until:
		}
		if err := g.Gone(); err != nil {
			return c.leave(err)
		}
		if last { // who knows nothing yet gets the outcome of the attempt under way, as a call without a budget does
			changed = r.Table.Watch(Key(c.Want)).Changed
			if g.Look() {
				return c.leave(ErrBudget)
			}
		}
		until = g.Until()
		if r.Port.Clock.Now() >= c.Long {
			c.Long = clock.Never
			g.Look()
			g.Long()
		}
	}
}

// watch waits until somebody else of this process knows more about the name.
func (r *Room) watch(ctx context.Context, s Step, g Guest) Step {
	timer := time.NewTimer(s.For)
	defer timer.Stop()
	select {
	case <-s.Changed:
		return Step{Do: Again}
	case <-timer.C:
		return Step{Do: Over, Err: ErrSilent}
	case <-ctx.Done():
	case <-r.life.Done():
	}
	return Step{Do: Over, Err: g.Gone()}
}

// leave is Leave for who has no more to do.
func (c *Caller) leave(err error) Step {
	s, broken := c.Leave(err)
	if broken != nil {
		broken()
	}
	return s
}
