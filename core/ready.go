package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/sweep"
)

// readyName is what Ready locks, for a moment.
const readyName = "holdfast.ready"

// Ready says whether locks can be taken now, and if not, why not. It is for health checks: see
// docs/operate/running.md.
//
// It takes the name "holdfast.ready" and gives it back, so it needs everything that a lock needs:
// the connection, the password, each permission, the scripts, room for the key, a master. If another
// process has that name at the moment, the service has answered, and it is ready too. In a Cluster,
// Ready asks the one node that has the name. Observers are not told.
//
// It costs two short commands, and takes a third of the TTL and 2 s at most. ctx limits it, too. The
// error is [ErrUnavailable], with the address and the reason in its text, ctx's error joined with
// it; [ErrDraining], without a command, once the Locker drains; or [ErrClosed]. The text may quote the
// server, so show it to operators, not to clients.
func (l *Locker) Ready(ctx context.Context) error {
	if l.none() {
		return errNoLocker
	}
	r := l.engine
	r.enter()
	defer r.leave()
	if r.drained() {
		return r.refusal("ready", "")
	}
	if ctx.Err() != nil {
		return &endedError{ctx.Err(), &unavailableError{"ready", "", errNotAsked}}
	}
	err := opaque(r.takeAndGiveBack(ctx, l.cfg))
	if err == nil {
		return nil
	}
	if at, ok := r.driver.(driver.Locator); ok {
		err = fmt.Errorf("%s at %s: %w", r.can.Backend, at.Location(), err)
	}
	failed := &unavailableError{"ready", "", err}
	if ctx.Err() != nil {
		return &endedError{ctx.Err(), failed}
	}
	return failed
}

// takeAndGiveBack locks and frees readyName, and returns why that is not possible.
func (r *engine) takeAndGiveBack(ctx context.Context, c *config) error {
	b := newToken(r, readyName, &config{ttl: c.ttl})
	claim := b.claim()
	bound := b.cfg.attemptTimeout()
	began := time.Now()
	_, _, err := b.attempt(ctx, bound, claim)
	if err != nil {
		b.giveUp(ctx, nil, offer{})
		if _, held := errors.AsType[*driver.Held](err); held {
			return nil
		}
		return err
	}
	b.to(tokenOver)
	given := make(chan error, 1)
	r.spawn(func() {
		err := b.cleanUp(ctx)
		if failed(err) {
			b.doubt()
		}
		b.sweep(sweep.First)
		given <- err
	})
	bounded, cancel := context.WithTimeout(ctx, bound-time.Since(began))
	defer cancel()
	select {
	case err = <-given:
	case <-bounded.Done():
		return errNoAnswer
	}
	if failed(err) {
		return err
	}
	return nil
}
