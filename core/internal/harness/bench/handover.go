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
	ctx, cancel := patient(e.ctx, time.Now())
	defer cancel()
	for range 20 { // connections and scripts; beside each other, so they warm up waiting too
		x, err := e.locker(0).lock(ctx, lockName(0))
		must(err)
		must(x.Release(e.ctx))
	}
}

func (h handover) measure(e *env) {
	until := time.Now().Add(e.Length)
	ctx, cancel := patient(e.ctx, until)
	defer cancel()
	for mine := e.Proc == 0; ; mine = false {
		if err := h.turn(ctx, e, mine, until.Add(patience)); err != nil {
			e.failed(cmp.Or(context.Cause(ctx), err))
			return
		}
		if time.Now().After(until) {
			return
		}
	}
}

func (handover) turn(ctx context.Context, e *env, first bool, until time.Time) error {
	if !first { // the other one has it now: line up behind it
		if _, err := e.baton.await(until); err != nil {
			return err
		}
	}
	x, err := e.locker(0).lock(ctx, lockName(0))
	if err != nil {
		return err
	}
	now := monotonic()
	if !first {
		freed, err := e.baton.await(until)
		if err != nil {
			return err
		}
		e.Waits = append(e.Waits, now-freed)
	}
	if err := e.baton.pass(now); err != nil {
		return err
	}
	time.Sleep(2*time.Millisecond + rand.N(10*time.Millisecond)) //nolint:gosec // G404: no secret
	freed := monotonic()
	if err := x.Release(ctx); err != nil {
		return err
	}
	return e.baton.pass(freed)
}

func (handover) finish(*env) {}
