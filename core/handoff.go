package core

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/key"
)

// Handoff lets a lease go on in another process. [Lease.Detach] leaves the name for its hand-off,
// and [Locker.Attach] takes it over. A hand-off works once.
//
// It is a secret, and prints as its name only. Send it as text, with [Handoff.Encode] and
// [ParseHandoff], over a channel that only those can read who may have the lock. The lock service
// has a hash of it. The zero Handoff is for no name.
type Handoff struct {
	name   string
	secret [16]byte
}

func newHandoff(name string) Handoff {
	t := Handoff{name: name}
	_, _ = rand.Read(t.secret[:]) // never fails: crypto/rand ends the process instead
	return t
}

// Name returns the name that the hand-off is for.
func (t Handoff) Name() string { return t.name }

// hash is what the lock service knows the hand-off by.
func (t Handoff) hash() string {
	sum := sha256.Sum256(t.secret[:])
	return base64.RawURLEncoding.EncodeToString(sum[:])[:driver.HandoffWidth]
}

const handoffVersion = 1

// Encode returns the hand-off with its secret, for [ParseHandoff]. The text has at most 290
// letters, digits, '-' and '_', so it fits into a header, a JSON string or a URL.
func (t Handoff) Encode() string {
	raw := append([]byte{handoffVersion}, t.secret[:]...)
	return base64.RawURLEncoding.EncodeToString(append(raw, t.name...))
}

// ParseHandoff reads what [Handoff.Encode] has written. Anything else is [ErrInvalid], and the
// error says nothing about the text.
func ParseHandoff(s string) (t Handoff, err error) {
	raw, _ := base64.RawURLEncoding.DecodeString(s)
	if len(raw) > len(t.secret) {
		t.name = string(raw[1+copy(t.secret[:], raw[1:]):])
	}
	if key.CheckName(t.name) != nil || t.Encode() != s { // of another version, or base64 that was written in another way
		return Handoff{}, invalidf("hand-off: not one of this version")
	}
	return t, nil
}

// Format prints the hand-off's name for every verb. It prints no secret, so the output may be
// logged.
func (t Handoff) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "handoff(%q)", t.name) // fmt has no way to return the error
}

// LogValue gives slog the hand-off's name.
func (t Handoff) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(t)) }

// MarshalText fails, because an encoder would either lose the secret or give it away unasked. Send
// the string that [Handoff.Encode] returns.
func (t Handoff) MarshalText() ([]byte, error) {
	return nil, errors.New("core: a Handoff is not marshalled: send Handoff.Encode, and read it with ParseHandoff")
}

// Detach ends the lease and keeps its name taken, for the time of keep, for the hand-off that it
// returns. With it, work goes on under the same lock in another process: for example, a request
// hands the name to the task that it has enqueued. [Lease.HandOff] is Detach with the sending
// inside.
//
// The other process takes the name over with [Locker.Attach]. Until then nobody renews the name,
// and nobody holds it. If the other process comes before keep is over, it knows that nobody has had
// the name in between. If nobody comes, the name comes free when keep is over. keep is at least a
// millisecond.
//
// The lease's context ends, as by Release. No dedup marker is left, because the work is not
// finished. Release, Complete and Finish then return what they return for a lease that was
// released.
//
// If the lease stands afterwards, the error is one of these:
//
//   - [ErrInvalid] for a lease of [WithShared], [WithLimit] or [WithMinHold], for one of several names
//     with [WithDedup], for a lease that has re-entered another one or is re-entered, for a keep that
//     cannot work, and if the backend cannot detach;
//   - ctx's error if ctx had ended before;
//   - [ErrUnavailable] if the lease is degraded.
//
// If the lease is over, it is a *[LostError] or [ErrReleased] if it was over before. It is
// ErrUnavailable, or ctx's error joined with it, if the outcome is not known. Then the name comes
// free by the later of its TTL and keep, mostly at once.
func (x *Lease) Detach(ctx context.Context, keep time.Duration) (Handoff, error) {
	if err := x.detachable(keep); err != nil {
		return Handoff{}, err
	}
	if lost := x.Err(); lost != nil {
		return Handoff{}, lost
	}
	if x.Degraded() {
		return Handoff{}, &unavailableError{"detach", x.want.Name, errDegraded}
	}
	if ctx.Err() != nil {
		return Handoff{}, &endedError{ctx.Err(), &unavailableError{"detach", x.want.Name, errNotAsked}}
	}
	handoff := newHandoff(x.want.Name)
	err := x.leave(ctx, claim.Left{Keep: keep.Truncate(time.Millisecond), Handoff: handoff.hash()})
	if err == nil {
		return handoff, nil
	}
	if errors.Is(err, ErrUnavailable) || call.Panicked(err) {
		x.engine.tasks.Go(func() {
			if settled, _ := x.outcome(); settled != nil {
				<-settled
			}
			x.engine.recall(context.WithoutCancel(ctx), x.cfg, handoff)
		})
	}
	return Handoff{}, raise(err)
}

// recall makes a hand-off useless: it takes the name over with it, and frees it.
func (r *engine) recall(ctx context.Context, c *config, h Handoff) {
	k, wish := r.room.Desk.New(h.name), &claim.Wish{TTL: c.TTL, Handoff: h.hash()}
	reply := r.room.Desk.Acquire(ctx, k, wish, 0, r.clock.Read(), driver.Patience(c.TTL))
	r.room.Desk.CleanNow(k, k.Drop(reply.Now.Awake()))
}

// detachable checks what never changes during a lease.
func (x *Lease) detachable(keep time.Duration) error {
	if x.none() {
		return errNoLease
	}
	var c config
	c.duration("Detach", keep)
	switch {
	case c.err != nil:
		return c.err
	case keep == 0:
		return invalidf("Detach(0s): nobody could come in that time")
	case x.root() != x:
		return invalidf("Detach of %q: the lease has re-entered another one, which is to be detached", x.want.Name)
	case x.cfg.Together():
		return invalidf("Detach of %q: not with WithShared or WithLimit", x.want.Name)
	case x.cfg.MinHold > 0:
		return invalidf("Detach of %q: not with WithMinHold, whose rest would be lost", x.want.Name)
	case x.cfg.set != nil && x.cfg.set.marks:
		return invalidf("Detach of %q: not one of several names with WithDedup, whose marker stands for all of them", x.want.Name)
	case !x.engine.can.Detach:
		return lacks(x.engine.can, "Detach")
	default:
		return nil
	}
}

// HandOff is [Lease.Detach] with send, which sends the hand-off to the other process. If send
// returns an error or panics, the hand-off is called back: the name comes free, unless somebody has
// already used the hand-off.
//
// The context that send gets has the values of ctx, but it does not end with the lease. It ends
// with ctx. If ctx is derived from the context of the work, it ends with the context that the lease
// was asked for with: the context of the request. [Lease.Context] has nothing of that one's end.
//
// The errors are those of Detach, and send's own as it is.
func (x *Lease) HandOff(ctx context.Context, keep time.Duration, send func(context.Context, Handoff) error) error {
	if send == nil {
		return invalidf("HandOff: nil function")
	}
	if !x.none() {
		x.engine.calls.Enter() // Drain and Close wait for it, since it may have to be called back
		defer x.engine.calls.Leave()
	}
	handoff, err := x.Detach(ctx, keep)
	if err != nil {
		return err
	}
	beyond, cancel := x.beyond(ctx)
	defer cancel()
	sent := false
	defer func() {
		if !sent { // a panic, too
			x.callBack(beyond, handoff)
		}
	}()
	err = send(beyond, handoff)
	sent = err == nil
	return err
}

// callBack recalls a hand-off that was not sent, and waits for that as long as ctx stands.
func (x *Lease) callBack(ctx context.Context, handoff Handoff) {
	r, over := x.engine, make(chan struct{})
	r.tasks.Go(func() {
		defer close(over)
		r.recall(context.WithoutCancel(ctx), x.cfg, handoff)
	})
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// beyond returns ctx without the end of x.
func (x *Lease) beyond(ctx context.Context) (context.Context, context.CancelFunc) {
	under := contextOf(ctx)
	for under != nil && under.lease != x {
		under = contextOf(under.parent)
	}
	if under == nil {
		return ctx, func() {}
	}
	beyond, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(under.parent, func() { cancel(context.Cause(under.parent)) })
	ended := func() { stop(); cancel(nil) }
	deadline, ok := ctx.Deadline()
	if !ok {
		return beyond, ended
	}
	bounded, release := context.WithDeadline(beyond, deadline)
	return bounded, func() { release(); ended() }
}

// Attach takes over the name of a hand-off, with a new fence. It goes before all waiters of the
// name, because the name was never free.
//
// A hand-off is no error if it was used before, if its time is over, or if the lock service does
// not know it. Then Attach is [Locker.Acquire] of the hand-off's name: it waits in the same way,
// and returns the same errors.
//
// The zero Handoff, [WithShared] and [WithLimit] are [ErrInvalid], because only exclusive leases
// are detached. So is a backend that cannot do it.
func (l *Locker) Attach(ctx context.Context, h Handoff, opts ...Option) (*Lease, error) {
	cfg, err := l.resolve(opts)
	switch {
	case err != nil:
		return nil, err
	case h.name == "":
		return nil, invalidf("Attach: the zero Handoff")
	case cfg.Together():
		return nil, invalidf("Attach: not with WithShared or WithLimit: only exclusive leases are detached")
	case !l.engine.can.Detach:
		return nil, lacks(l.engine.can, "Attach")
	}
	attach := *cfg
	attach.Handoff = h.hash()
	x, err := l.acquire(ctx, h.name, attach.settled(), cfg.wait)
	if errors.Is(err, ErrDuplicate) { // the work is done, so nobody comes with the hand-off any more
		r := l.engine
		r.tasks.Go(func() { r.recall(context.WithoutCancel(ctx), cfg, h) })
	}
	return x, err
}

// DoAttached is [Locker.Do] with [Locker.Attach]: it runs fn while it holds the name of the
// hand-off.
func (l *Locker) DoAttached(ctx context.Context, h Handoff, fn func(context.Context) error, opts ...Option) error {
	if fn == nil {
		return invalidf("fn: nil")
	}
	x, err := l.Attach(ctx, h, opts...)
	if err != nil {
		return err
	}
	return runHeld(ctx, x.workContext(), fn, x)
}
