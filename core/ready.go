package core

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
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
	r.calls.Enter()
	defer r.calls.Leave()
	if r.accept.Err() != nil {
		return r.refusal("ready", "")
	}
	if ctx.Err() != nil {
		return &endedError{ctx.Err(), &unavailableError{"ready", "", errNotAsked}}
	}
	err := opaque(r.takeAndGiveBack(ctx, l.cfg))
	if err == nil {
		return nil
	}
	if at := r.driver.Capabilities().Location; at != "" {
		err = fmt.Errorf("%s at %s: %w", r.can.Backend, at, err)
	}
	failed := &unavailableError{"ready", "", err}
	if ctx.Err() != nil {
		return &endedError{ctx.Err(), failed}
	}
	return failed
}

// takeAndGiveBack locks and frees readyName, and returns why that is not possible.
func (r *engine) takeAndGiveBack(ctx context.Context, c *config) error {
	k, wish, now := r.room.Desk.New(readyName), &claim.Wish{TTL: c.TTL}, r.clock.Read()
	bound := driver.Patience(c.TTL)
	reply := r.room.Desk.Acquire(ctx, k, wish, 0, now, bound)
	if kind := reply.Meaning().Kind; kind != driver.Done {
		r.room.Desk.Clean(k, k.Drop(reply.Now.Awake()))
		if kind == driver.HeldBy {
			return nil
		}
		return reply.Err
	}
	given := make(chan call.Reply, 1)
	left := bound - reply.Now.Awake().Sub(now.Awake())
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	r.tasks.Go(func() {
		reply := r.room.Desk.Release(context.WithoutCancel(ctx), k.Release(wish, claim.Left{}), r.clock.Read(), left)
		k.Cleaned(reply.Meaning(), 0)
		r.room.Desk.Clean(k, k.Drop(reply.Now.Awake()))
		given <- reply
	})
	select {
	case reply = <-given:
	case <-ctx.Done():
		return errNoAnswer
	}
	if !reply.Meaning().Answered() {
		return reply.Err
	}
	return nil
}
