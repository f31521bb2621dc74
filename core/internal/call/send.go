package call

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

var (
	// ErrNoAnswer is the outcome of a call that was left behind.
	ErrNoAnswer = driver.Unavailable(errors.New("no answer in time"))
	// ErrHung is the outcome of an attempt in place of a Wait that was not begun, since far too many calls do not return.
	ErrHung = driver.NotSent(errors.New("too many calls of the backend's client do not return"))
)

// Panic is the outcome of a call in which the driver's client has panicked. Whoever has asked for the
// call raises it again, on his own goroutine.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("the backend's client panicked: %v", p.Value) }

// Panicked says that err is a Panic, or has one in it.
func Panicked(err error) bool {
	_, ok := errors.AsType[*Panic](err)
	return ok
}

// Owner is who gets the outcome of a command after its caller has gone.
type Owner interface{ Late(op Op, r Reply) }

// Send makes one call, which takes bound at most, and waits for its outcome. If it does not wait any
// longer, late gets the outcome once it is known. It may be nil.
//
// now is a reading of the clocks that the caller has made just before. The end of ctx ends the wait, except
// for a release, and while the driver is quick.
func (p *Port) Send(ctx context.Context, op Op, c driver.Claim, now clock.Reading, bound time.Duration, late Owner) Reply {
	if op == Wait {
		return p.sendWait(ctx, c, now, bound, late)
	}
	if p.Inline(ctx, now.Awake()) {
		bounded, end := p.bounded(ctx, now.Awake(), bound)
		r := p.call(bounded, op, c, now)
		end()
		p.heard(r)
		return r
	}
	bounded, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	r := p.apart(bounded, op, c, now, 0, late)
	p.heard(r)
	return r
}

// sendWait is Send for a Wait. It ends early if ctx does, and listens for as long again as it was to take: an answer
// at the very end of its time is an answer, too.
func (p *Port) sendWait(ctx context.Context, c driver.Claim, now clock.Reading, bound time.Duration, late Owner) Reply {
	bounded, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	if p.Can.Punctual {
		return p.call(bounded, Wait, c, now)
	}
	return p.apart(bounded, Wait, c, now, bound, late)
}

// bounded returns the context of a call on its caller's goroutine, which a cancellation of the caller does not end.
func (p *Port) bounded(ctx context.Context, now clock.Awake, d time.Duration) (context.Context, context.CancelFunc) {
	if p.Can.Forgets {
		return p.pool.Get(ctx, p.Clock.Time(now), d)
	}
	if deadline, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(deadline))
	}
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}

// call calls the driver. A panic of its client is an outcome: what was sent may be executed.
func (p *Port) call(ctx context.Context, op Op, c driver.Claim, asked clock.Reading) (r Reply) {
	defer func() {
		if v := recover(); v != nil {
			r = Reply{Err: &Panic{v, debug.Stack()}, Asked: asked, Now: p.Clock.Read()}
		}
	}()
	r.Asked = asked
	switch op {
	case Acquire:
		r.Grant, r.Err = p.driver.Acquire(ctx, c)
	case Wait:
		r.Grant, r.Err = p.driver.Wait(ctx, c)
	case Release:
		r.Err = p.driver.Release(ctx, c)
	}
	r.Now = p.Clock.Read()
	if !r.Grant.Asked.IsZero() {
		r.Asked = p.Clock.At(r.Grant.Asked, asked)
	}
	return r
}

// grace is how long to listen for the answer to a Wait that was broken off.
const grace = 50 * time.Millisecond

// apart makes a call on a goroutine of its own, and waits for its outcome until ctx has ended, and for
// longer after that.
func (p *Port) apart(ctx context.Context, op Op, c driver.Claim, asked clock.Reading, longer time.Duration, late Owner) Reply {
	answer, left := make(chan Reply), make(chan struct{}) // no buffer: either the caller has the outcome, or late
	p.Tasks.Go(func() {
		r := Reply{Err: &Panic{Value: "runtime.Goexit"}, Asked: asked, Now: asked}
		defer func() { // also if the client ends the goroutine
			select {
			case answer <- r:
			case <-left:
				p.hung.Add(-1)
				if late != nil {
					late.Late(op, r)
				}
			}
		}()
		r = p.call(ctx, op, c, asked)
	})
	select {
	case r := <-answer:
		return r
	case <-ctx.Done():
	}
	if ctx.Err() == context.Canceled { // nobody wants the answer any more
		longer = min(longer, grace)
	}
	if longer > 0 {
		timer := time.NewTimer(longer)
		defer timer.Stop()
		select {
		case r := <-answer:
			return r
		case <-timer.C:
		}
	}
	p.hung.Add(1)
	close(left)
	return Reply{Err: ErrNoAnswer, Asked: asked, Now: p.Clock.Read()}
}
