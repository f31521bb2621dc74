package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// wish is one way to want names.
type wish struct {
	kind    string
	limit   int // how many may hold the name together in this way; 0 is any number
	names   int
	opts    []core.Option
	keeps   time.Duration // from the grant on, however early it is released
	handsOn bool
}

// wishes are all ways that a backend claims to have. What is there more than once is drawn more often: not what keeps a
// name from all others for long.
func wishes(can driver.Capabilities, ttl time.Duration) (all []wish) {
	often := func(n int, w wish) { all = append(all, slices.Repeat([]wish{w}, n)...) }
	often(6, wish{kind: "exclusive", limit: 1, names: 1})
	often(1, wish{kind: "two names", limit: 1, names: 2, opts: []core.Option{core.WithWait(ttl / 4)}}) // while it has the first one
	if can.Shared {
		often(4, wish{kind: "shared", names: 1, opts: []core.Option{core.WithShared()}})
	}
	if can.Limit {
		often(3, wish{kind: "limit 2", limit: 2, names: 1, opts: []core.Option{core.WithLimit(2)}})
		often(3, wish{kind: "limit 3", limit: 3, names: 1, opts: []core.Option{core.WithLimit(3)}})
	}
	if can.Keep {
		often(1, wish{kind: "minimal hold", limit: 1, names: 1, keeps: ttl / 4, opts: []core.Option{core.WithMinHold(ttl / 4), core.WithoutRenewal()}})
	}
	if can.Detach {
		often(1, wish{kind: "handed on", limit: 1, names: 1, handsOn: true})
	}
	return all
}

// worker is one goroutine of a process.
type worker struct {
	*weather

	random  *rand.Rand
	name    string
	process int
	at      int // the name that it wants mostly: or all would soon wait for the one that is held longest
}

func (w *weather) work(ctx context.Context, i int) {
	p, at := i%stormProcesses, i/stormProcesses
	one := worker{w, chance(uint64(i)), fmt.Sprintf("process %d, worker %d", p, at), p, at % stormNames} //nolint:gosec // G115: a few
	for ctx.Err() == nil {
		one.turn(ctx)
	}
}

// held is a lease, or several at once.
type held interface {
	Context() context.Context
	Err() error
	ValidUntil() time.Time
	Release(ctx context.Context) error
}

// turn wants something, has it for a while, and gives it back.
func (w *worker) turn(ctx context.Context) {
	want := w.wishes[w.random.IntN(len(w.wishes))]
	first := w.at
	if w.random.IntN(4) == 0 {
		first = w.random.IntN(stormNames)
	}
	if want.limit > 1 {
		first /= 2 // so that they meet
	}
	names := []string{nameOf(first)}
	if want.names > 1 {
		names = append(names, nameOf((first+1)%stormNames))
	}
	hold := time.Duration(w.random.IntN(40)) * time.Millisecond
	if want.limit != 1 {
		hold *= 5 // so that others come meanwhile
	}
	if w.random.IntN(50) == 0 {
		hold = w.ttl * 3 / 2 // it has to be renewed
	}
	call, cancel := w.some(ctx, 4)
	defer cancel()
	locks := w.lockers[w.process]
	if len(names) == 1 {
		x, err := locks.Acquire(call, names[0], want.opts...)
		if w.answered(call, "Acquire", names[0], err) {
			w.hold(ctx, want, x, hold, x)
		}
		return
	}
	set, err := locks.AcquireAll(call, names, want.opts...)
	if w.answered(call, "AcquireAll", names[0], err) {
		w.hold(ctx, want, set, hold, set.Lease(names[0]), set.Lease(names[1]))
	}
}

// some is a context that, for one of n calls, ends early.
func (w *worker) some(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	if w.random.IntN(n) > 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(w.random.Int64N(int64(w.ttl))))
}

// late is how long a busy machine may take for what takes no time.
const late = 2 * time.Second

// answered says whether a call has done what it was asked to. Why it has not must be something that happens in a storm.
func (w *worker) answered(ctx context.Context, what, name string, err error) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Since(deadline) > late {
		w.find(name, "%s: %s of %s returned %s after its context's end: %v", w.name, what, name, time.Since(deadline), err)
	}
	for _, known := range []error{core.ErrUnavailable, core.ErrHeld, core.ErrLost, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return false
		}
	}
	if err != nil {
		w.find(name, "%s: %s of %s: %v", w.name, what, name, err)
	}
	return err == nil
}

// hold relies on x for a while, notes for how long, and ends it.
func (w *worker) hold(ctx context.Context, want wish, x held, d time.Duration, leases ...*core.Lease) {
	s := span{who: w.name, kind: want.kind, limit: want.limit, from: time.Now()}
	kept := x.ValidUntil().Add(want.keeps - w.ttl) // never later than it is
	s.to, s.end = w.rely(x, s.from.Add(d), leases[0].Name())
	if s.to.IsZero() {
		_ = x.Release(context.WithoutCancel(ctx)) // it was over when it came
		return
	}
	if want.keeps > 0 && kept.After(s.to) {
		s.to = kept
	}
	var handoff core.Handoff
	if want.handsOn && x.Err() == nil {
		handoff = w.handOn(ctx, leases[0], &s)
	}
	for _, lease := range leases {
		s.fence = lease.Fence()
		w.add(lease.Name(), s)
	}
	w.counting.Lock()
	w.kinds[want.kind]++
	w.counting.Unlock()
	if handoff.Name() != "" {
		w.takeOver(ctx, want, handoff)
		return
	}
	end := context.WithoutCancel(ctx)
	if w.random.IntN(8) == 0 { // who is asked to stop releases under a context that has ended
		dead, cancel := context.WithCancel(end)
		cancel()
		end = dead
	}
	w.answered(end, "Release", leases[0].Name(), x.Release(end))
}

// look is how often who holds a lease asks whether it still does.
const look = 10 * time.Millisecond

// rely waits until its time is over, or the lease is. It returns the last moment at which x was trusted, and how it ended.
func (w *worker) rely(x held, until time.Time, name string) (to time.Time, end string) {
	over := time.Time{} // when x was first seen to be trusted for too long
	for stood := x.ValidUntil(); ; {
		now, valid := time.Now(), x.ValidUntil()
		if x.Context().Err() != nil {
			return to, w.lost(x, now, stood, name)
		}
		stood = valid // of a lease that is lost, it is not in the future any more
		switch {
		case now.Before(valid):
			to, over = now, time.Time{}
		case over.IsZero():
			over = now
		case now.Sub(over) > late/4:
			w.find(name, "%s: the context of %s goes on %s after ValidUntil", w.name, name, now.Sub(valid))
			return to, "never told"
		}
		if !now.Before(until) {
			return to, "released"
		}
		select {
		case <-time.After(min(look, until.Sub(now))):
		case <-x.Context().Done():
		}
	}
}

// lost says why a lease has ended. The backend must keep it for as long as core trusts it.
func (w *worker) lost(x held, now, valid time.Time, name string) string {
	err := x.Err()
	lost, ok := errors.AsType[*core.LostError](err)
	if !ok {
		return fmt.Sprint(err)
	}
	if early := valid.Sub(now); lost.Reason == core.ReasonTaken && early > 0 {
		w.find(name, "%s: %s was taken %s before the end of its trust", w.name, name, early)
	}
	return fmt.Sprint("lost: ", lost.Reason)
}

// handOn leaves the name for another process. Nobody has it until then, or until the time for that is over.
func (w *worker) handOn(ctx context.Context, x *core.Lease, s *span) core.Handoff {
	keep := w.ttl / 4
	began := time.Now()
	handoff, err := x.Detach(context.WithoutCancel(ctx), keep)
	if w.answered(ctx, "Detach", x.Name(), err) {
		s.to, s.end = began.Add(keep-keep/50), "handed on" // a server's clock may be a little faster
	}
	return handoff
}

// takeOver takes over, in another process, what was handed on, unless nobody comes.
func (w *worker) takeOver(ctx context.Context, want wish, handoff core.Handoff) {
	if w.random.IntN(4) == 0 {
		return
	}
	select {
	case <-time.After(time.Duration(w.random.Int64N(int64(w.ttl / 3)))):
	case <-ctx.Done():
	}
	call, cancel := w.some(ctx, 4)
	defer cancel()
	began := time.Now()
	x, err := w.lockers[w.random.IntN(stormProcesses)].Attach(call, handoff)
	w.giveUp(handoff.Name(), w.name, began) // what Attach gets may be given back before the time is over
	if w.answered(call, "Attach", handoff.Name(), err) {
		want.kind, want.handsOn = "taken over", false
		w.hold(ctx, want, x, 30*time.Millisecond, x)
	}
}
