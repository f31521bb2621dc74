package sqllock

import (
	"context"
	"fmt"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

const (
	// firstPoll is how soon the first in a queue looks again if nobody tells it. Its pauses grow with the time that it has
	// waited for the same owner, to lastPoll: who has held the name for long will most likely hold it for a while. Those
	// behind it look less often. A look at SQLite costs no server anything.
	firstPoll      = 10 * time.Millisecond
	lastPoll       = 250 * time.Millisecond
	lastPollSQLite = 25 * time.Millisecond

	// lastLook is how long before the end of a context the last look begins, if looks take half as long or longer.
	lastLook = 100 * time.Millisecond

	// lastWords is how long, after the end of a context, we wait for an answer that is under way.
	lastWords = 30 * time.Millisecond
)

// Wait implements driver.Queuer. Each look is a read, and a write if the place has to be kept alive. With
// [WithListen] it looks when it is told, and when the owner's TTL or the life of the first place ends. A claim
// that was refused a moment ago has looked already.
func (s *store) Wait(ctx context.Context, c driver.Claim) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	ear, leave := s.hub.listen(c.At())
	defer leave()
	told := s.hub.await(ctx)
	if err := driver.NotSent(ctx.Err()); err != nil { // while it began to listen
		return err
	}
	for first := true; ; first, told = false, s.hub.reopened() {
		var l look
		seen, began := false, time.Now()
		if first && told {
			l, seen = s.hub.lately(ear)
		}
		if !seen {
			var err error
			if l, err = s.look(ctx, c, first); err != nil {
				return unanswered(err)
			}
			if l.try {
				return nil
			}
		}
		pause := s.pause(l, told, driver.Recheck(c.TTL))
		if ends, ok := ctx.Deadline(); ok && time.Until(ends) < pause+min(2*time.Since(began), lastLook) {
			pause = time.Hour // until ctx ends: it would cut the next look off, and drivers then give up the connection
		}
		timer := time.NewTimer(pause)
		select {
		case <-ear.heard:
			timer.Stop()
			return nil
		case <-timer.C:
			if ctx.Err() == nil {
				continue
			}
		case <-ctx.Done():
			timer.Stop()
		}
		return ctx.Err()
	}
}

// look is what one look of a waiter has shown.
type look struct {
	try    bool
	again  time.Duration // until a TTL or a place ends
	ahead  int           // places
	waited time.Duration // for the same owner
}

// look puts c's place in the queue, or keeps it alive there.
func (s *store) look(ctx context.Context, c driver.Claim, beat bool) (l look, err error) {
	ctx, stop := outlast(ctx)
	defer stop()
	var said look
	var next *turn
	err = s.change(ctx, c, func(r *row) {
		try, again, ahead := r.lineUp(c, s.channel(), beat)
		if said, next = (look{try: try}), nil; !try {
			said, next = r.lookFrom(ahead, again), r.turnOf(c)
		}
	})
	if err != nil {
		return l, err
	}
	s.hub.expect(c, next)
	return said, nil
}

// unanswered has the error of a look not be taken for the end of a wait, after which the place certainly stands: drivers
// return a context's error as it is.
func unanswered(err error) error { return fmt.Errorf("sqllock: the queue: %w", err) }

// lookFrom is what a place in the queue sees, with the first reason to look again.
func (r *row) lookFrom(ahead int, again int64) look {
	return look{
		again: time.Duration(again-r.now+1) * time.Microsecond, // so that it is gone then, not about to go
		ahead: ahead, waited: time.Duration(r.now-max(r.Line[ahead].Came, r.lastGrant())) * time.Microsecond,
	}
}

// lastGrant is when somebody got the name last, as far as the fences tell: 0 if they are ahead of the clock.
func (r *row) lastGrant() int64 {
	at := max(r.turn, -r.turn)
	for _, h := range r.Holders {
		at = max(at, h.Since)
	}
	if at > r.now {
		return 0
	}
	return at
}

// pause is how long to wait before the next look.
func (s *store) pause(l look, told bool, recheck time.Duration) time.Duration {
	pause, last := l.again, lastPoll
	if s.dialect == SQLite {
		last = lastPollSQLite
	}
	if !told {
		poll := min(max(l.waited/8, firstPoll), last) * time.Duration(l.ahead+1)
		pause = min(pause, poll, recheck)
	}
	return max(pause, time.Millisecond)
}

// outlast is ctx, but ends a while later. Otherwise a statement that queues a place, and is under way when
// its caller gives up, could be overtaken by the statement that leaves the queue.
func outlast(ctx context.Context) (longer context.Context, stop func()) {
	deadline, ok := ctx.Deadline()
	if !ok { // longer than any wait
		deadline = time.Now().Add(time.Hour)
	}
	longer, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(lastWords))
	stopWatching := context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })
	return longer, func() { stopWatching(); cancel() }
}
