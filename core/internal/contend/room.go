package contend

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/watchdog"
)

// Room carries out the steps of one Locker.
type Room struct {
	Place

	Port *call.Port
	Dog  *watchdog.Dog

	Desk *claim.Desk
	life context.Context // ends when the Locker is closed
}

// NewRoom returns a room that sends through p until life ends.
func NewRoom(life context.Context, p *call.Port) *Room {
	r := &Room{Port: p, Dog: watchdog.New(p), Desk: claim.NewDesk(p), life: life}
	r.Table, r.Claim, r.Watch, r.Keeper, r.Can = NewTable(), r.Desk.New, r.Dog, r, p.Can
	return r
}

// Close passes no hold on any more, and makes clean-up end soon. life has ended before.
func (r *Room) Close() {
	r.Closed.Store(true)
	r.Desk.Close()
}

// Patience is what a call waits for.
type Patience struct {
	Budget time.Duration   // for another holder: 0 for not at all, Forever
	Life   context.Context // ends when the call must not go on, since the Locker is closed or drained; nil for the room's
	Long   func(error)     // is told once, after three TTLs, what the line knows; nil for nobody
}

// Forever is a budget without end.
const Forever time.Duration = -1

// longWait is how many TTLs a call waits until Patience.Long is told: it may wait for somebody who waits for it.
const longWait = 3

// Get gets a hold for w. The errors: *Held, what the driver says, ctx's own, joined with what is known of the name, ErrSilent, ErrClosed if
// the life has ended.
func (r *Room) Get(ctx context.Context, w *hold.Want, p Patience) (*hold.Hold, error) {
	if p.Life == nil {
		p.Life = r.life
	}
	now := r.Port.Clock.Read()
	c := r.NewCaller(now.Awake(), w, p.Budget == 0)
	for s := c.Next(now.Awake()); ; {
		r.Do(s)
		switch s.Do {
		case Send:
			rep := r.Desk.Acquire(ctx, s.Claim, &w.Wish, s.Fences, now, s.For)
			s = c.Answered(rep, gone(ctx, p.Life))
		case Listen:
			s = r.listen(ctx, c, p)
		case Watch:
			s = r.watch(ctx, p.Life, c, s)
		case Again:
			s = c.Next(r.Port.Clock.Now())
		default:
			return r.got(ctx, p.Life, s)
		}
	}
}

// gone is why a caller does not want anything any more; nil if he does.
func gone(ctx, life context.Context) error {
	if life.Err() != nil {
		return ErrClosed
	}
	return ctx.Err()
}

// Do does what a step says is done before all.
func (r *Room) Do(s Step) {
	if s.Start != nil {
		r.start(s.Start)
	}
	if s.Behind != nil && s.Clean != (claim.Cleanup{}) {
		r.Desk.Clean(s.Behind, s.Clean)
	}
}

func (r *Room) start(a *Asker) { r.Port.Tasks.Go(func() { r.ask(a) }) }

// got is the end of a call. A hold that its caller does not want any more is given back. A panic of the client is raised again here, on its
// caller's goroutine.
func (r *Room) got(ctx, life context.Context, s Step) (*hold.Hold, error) {
	if s.Hold != nil && s.Err == nil {
		s.Err = gone(ctx, life)
	}
	if s.Err == nil {
		return s.Hold, nil
	}
	if s.Hold != nil {
		s.Hold.Forgo()
		r.Port.Tasks.Go(func() { r.End(context.WithoutCancel(ctx), s.Hold, claim.Left{}) })
	}
	if p, ok := errors.AsType[*call.Panic](s.Err); ok {
		panic(p)
	}
	return nil, s.Err
}

// listen waits for a word of the line.
func (r *Room) listen(ctx context.Context, c *Caller, p Patience) Step {
	waited := r.Port.Clock.Now().Sub(c.Began)
	var over, long <-chan time.Time
	if p.Budget != Forever {
		timer := time.NewTimer(p.Budget - waited)
		defer timer.Stop()
		over = timer.C
	}
	if p.Long != nil {
		timer := time.NewTimer(longWait*c.Want.TTL - waited)
		defer timer.Stop()
		long = timer.C
	}
	for {
		select {
		case w := <-c.Words():
			return c.Told(w)
		case <-over:
			return r.leave(c, c.Known(r.Port.Clock.Now()))
		case <-ctx.Done():
			return r.leave(c, errors.Join(ctx.Err(), c.Known(r.Port.Clock.Now())))
		case <-p.Life.Done():
			return r.leave(c, ErrClosed)
		case <-long:
			p.Long(c.Known(r.Port.Clock.Now()))
		}
	}
}

func (r *Room) leave(c *Caller, err error) Step {
	s, broken := c.Leave(err)
	if broken != nil {
		broken()
	}
	return s
}

// watch waits for a change of the line.
func (r *Room) watch(ctx, life context.Context, c *Caller, s Step) Step {
	timer := time.NewTimer(s.For)
	defer timer.Stop()
	select {
	case <-s.Changed:
		return c.Next(r.Port.Clock.Now())
	case <-timer.C:
		return Step{Do: Over, Err: ErrSilent}
	case <-ctx.Done():
		return Step{Do: Over, Err: ctx.Err()}
	case <-life.Done():
		return Step{Do: Over, Err: ErrClosed}
	}
}
