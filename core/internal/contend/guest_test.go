package contend

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
)

// guest is a call that goes when its context ends, or its room is closed.
type guest struct {
	ctx   context.Context
	room  *Room
	want  *hold.Want
	long  clock.Awake
	told  int // that it has waited for long
	knows Look
}

func (g *guest) Gone() error {
	if g.room.life.Err() != nil {
		return ErrClosed
	}
	return g.ctx.Err()
}

func (g *guest) Until() <-chan struct{} { return nil }
func (g *guest) Heard(call.Reply)       {}
func (g *guest) Waits(*hold.Hold)       {}
func (g *guest) Long()                  { g.told++ }

func (g *guest) Look() bool {
	g.knows = g.room.Table.Watch(Key(g.want))
	return g.knows.Held || g.knows.Known
}

// get gets a hold. What comes as its caller leaves is given back, and a panic of the client goes on.
func get(ctx context.Context, r *Room, w *hold.Want, budget time.Duration) (*hold.Hold, error) {
	return (&guest{ctx: ctx, room: r, want: w, long: clock.Never}).get(budget)
}

func (g *guest) get(budget time.Duration) (*hold.Hold, error) {
	h, err := g.room.Get(g.ctx, Call{g.want, budget, g.long, g.room.Port.Clock.Read()}, g)
	if h != nil {
		err = g.Gone()
	}
	if err != nil && h != nil {
		h.Forgo()
		leave(context.WithoutCancel(g.ctx), g.room, h, claim.Left{})
		h = nil
	}
	if p, ok := errors.AsType[*call.Panic](err); ok {
		panic(p)
	}
	return h, err
}

// ended is what the end of a hold has come to.
type ended chan hold.Outcome

func (e ended) Left(o hold.Outcome, _ error) { e <- o }

// leave ends a hold, and waits for that until ctx ends.
func leave(ctx context.Context, r *Room, h *hold.Hold, left claim.Left) (o hold.Outcome, known bool) {
	over := make(ended, 1)
	r.End(ctx, h, left, r.Port.Clock.Read(), over)
	select {
	case o = <-over:
		return o, true
	case <-ctx.Done():
		return o, false
	}
}
