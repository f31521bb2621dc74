package core

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/callctx"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// request makes one attempt. If this process has a tenure whose turns are over, that is yielded
// in the same step: that may put this process in the backend's line, so it has its place there
// by then.
func (a *acquisition) request(w *waiter, c driver.Claim) (grant driver.Grant, asked clock.Reading, err error) {
	patience := a.patience()
	if old := a.old; old != nil {
		began := time.Now()
		a.old = nil
		place := a.engine.names.lineUp(w)
		c.Place = place.id
		if grant, asked, err = a.yield(old, c, place); !outcomeOpen(err) && !errors.Is(err, driver.ErrNotSent) {
			return grant, asked, err
		}
		patience = max(patience-time.Since(began), patience/4) // both are one attempt
	}
	return a.token.attempt(a.ctx, patience, c)
}

// yielded is the outcome of a driver.Yielder's call.
type yielded struct {
	grant           driver.Grant
	errNext, errOld error
}

// yield sends one command that releases old and asks for c. What stays open on old's side
// is for its release to settle, in the background; what stays open on c's side is for the
// attempt that follows, with the same token.
func (a *acquisition) yield(old *tenure, c driver.Claim, at *place) (grant driver.Grant, asked clock.Reading, err error) {
	old.token.to(tokenEnding)
	asked = a.engine.clock.Read()
	if asked.Since(old.asked) >= old.life { // no command carries its token any more
		a.giveUpOld(old)
		return grant, asked, driver.ErrNotSent
	}
	ctx, cancel := a.engine.within(a.ctx, a.engine.patience(a.ctx, a.patience())/2)
	defer cancel()
	y := a.sendYield(ctx, old.token.claim(), c, at)
	a.engine.latency.heard(asked, a.engine.clock.Read(), !outcomeOpen(y.errNext))
	if failed(y.errOld) {
		caller := context.WithoutCancel(a.ctx)
		a.engine.spawn(func() { _ = release{old, outcomeOpen(y.errOld)}.run(caller) }) // told to observer and log
	} else {
		r := release{tenure: old}
		_ = r.over(y.errOld) // as above
	}
	if outcomeOpen(y.errNext) {
		a.token.doubt()
		a.token.doubtPlace(at)
	}
	return y.grant, asked, y.errNext
}

func (a *acquisition) sendYield(ctx context.Context, old, next driver.Claim, at *place) yielded {
	call := func(ctx context.Context) (y yielded) {
		y.grant, y.errNext, y.errOld = a.engine.yielder.Yield(ctx, old, next)
		return y
	}
	if callctx.Is(ctx) {
		return call(ctx)
	}
	b := a.token
	y, ok := callApart(ctx, a.engine, call, func(late yielded) {
		b.lateReply(ctx, reply{late.grant, late.errNext})
		b.leaveAgain(ctx, at)
	})
	if !ok {
		y.errNext, y.errOld = errNoAnswer, errNoAnswer
	}
	return y
}
