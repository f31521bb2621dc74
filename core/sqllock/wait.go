package sqllock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// lastWords is how long, after the end of a context, we wait for the answer to a look that is under way. A statement
// that queues a token must not be overtaken by the one that leaves the queue; and drivers give up a connection whose
// statement they have cut off.
const lastWords = 100 * time.Millisecond

// Wait implements driver.Driver. Each look is a read, and a write if it is granted or has to be kept alive. With [WithListen]
// it looks when it is told.
func (s *Store) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := s.ready(ctx); err != nil {
		return driver.Grant{}, err
	}
	heard, leave := s.subscriber.listen(c.Token)
	defer leave()
	s.subscriber.await(ctx)
	if err := driver.NotSent(ctx.Err()); err != nil { // while it began to listen
		return driver.Grant{}, err
	}
	w := &waiter{store: s, c: c, beat: true}
	return driver.Await(ctx, c, func(ctx context.Context) (driver.Grant, <-chan struct{}, error) {
		told := s.subscriber.tells() // before the look: it hears all that comes after that
		g, err := w.look(ctx, told)
		if errors.Is(err, driver.ErrNotSent) {
			return g, nil, unsettled(err)
		}
		if _, held := errors.AsType[*driver.Held](err); !held {
			return g, nil, err
		}
		if told {
			return g, heard, err
		}
		poll := make(chan struct{})
		time.AfterFunc(w.pause, func() { close(poll) })
		return g, poll, err
	})
}

// waiter is one call of Wait.
type waiter struct {
	store *Store
	c     driver.Claim
	beat  bool          // the first look keeps the entry alive
	turn  *turn         // what to write if the name is free, as far as the last look has shown
	pause time.Duration // before the next look, if nobody tells
}

// look asks for the name once, from the queue.
func (w *waiter) look(ctx context.Context, told bool) (driver.Grant, error) {
	ctx, stop := outlast(ctx)
	defer stop()
	if told && w.turn != nil {
		g, granted, err := w.store.takeTurn(ctx, w.c, w.turn)
		if err != nil || granted {
			return g, err
		}
	}
	channel := ""
	if told {
		channel = w.store.subscriber.channel
	}
	var said struct {
		grant   driver.Grant
		refused error
		turn    *turn
		pause   time.Duration
	}
	err := w.store.change(ctx, w.c, func(r *row) {
		r.stand(w.c, channel, w.beat)
		said.grant, said.refused = r.ask(w.c)
		said.turn, said.pause = r.turnOf(w.c), r.pause(w.c, w.store.dialect.lastPoll())
	})
	if err != nil {
		return driver.Grant{}, err
	}
	w.beat, w.turn, w.pause = false, said.turn, said.pause
	return said.grant, said.refused
}

// takeTurn takes the name if c is still the first in the queue, and the name is free now.
func (s *Store) takeTurn(ctx context.Context, c driver.Claim, t *turn) (g driver.Grant, granted bool, err error) {
	last, err := s.number(ctx, s.do.claim, c.Name, c.Token, c.Label, c.TTL.Microseconds(), t.fences, sign(t.fences),
		t.before, t.head, t.after, t.dead)
	return grantOf(last.n, t.fences), last.found, err
}

// unsettled is the error of a look that was certainly not executed: an earlier call may have put the token into the queue.
func unsettled(err error) error {
	if errors.Is(err, driver.ErrRefused) {
		return driver.Refused(driver.UnknownOutcome(err))
	}
	return driver.UnknownOutcome(err)
}

// outlast is ctx, but ends a while later.
func outlast(ctx context.Context) (longer context.Context, stop context.CancelFunc) {
	deadline, _ := ctx.Deadline() // driver.Await has set one
	longer, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(lastWords))
	stopWatching := context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })
	return longer, func() { stopWatching(); cancel() }
}
