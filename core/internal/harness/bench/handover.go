package bench

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// handover is two processes that take turns with one name.
type handover struct{}

func (handover) prepare(e *env) {
	for range 20 { // connections and scripts; beside each other, so they warm up waiting too
		x, err := e.locker(0).lock(e.ctx, lockName(0))
		must(err)
		must(x.Release(e.ctx))
	}
}

func (h handover) measure(e *env) {
	until := time.Now().Add(e.Length)
	ctx, cancel := patient(e.ctx, until)
	defer cancel()
	for mine := e.Proc == 0; ; mine = false {
		if !mine { // the other one has it now: line up behind it
			if err := e.baton.await(until.Add(patience)); err != nil {
				e.failed(err)
				return
			}
		}
		if err := h.turn(ctx, e); err != nil {
			e.failed(cmp.Or(context.Cause(ctx), err))
			return
		}
		if time.Now().After(until) {
			return
		}
	}
}

func (handover) turn(ctx context.Context, e *env) error {
	who := uint64(e.Proc) + 1 //nolint:gosec // G115: small numbers
	x, err := e.locker(0).lock(ctx, lockName(0))
	if err != nil {
		return err
	}
	now := monotonic()
	if from := e.place.freedBy.Load(); from != 0 && from != who {
		e.Waits = append(e.Waits, now-time.Duration(e.place.freedAt.Load()))
	}
	if err := e.baton.pass(); err != nil {
		return err
	}
	time.Sleep(2*time.Millisecond + rand.N(10*time.Millisecond)) //nolint:gosec // G404: no secret
	e.place.freedBy.Store(who)
	e.place.freedAt.Store(int64(monotonic()))
	return x.Release(ctx)
}

func (handover) finish(*env) {}
