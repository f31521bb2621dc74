package coalesce

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
)

// ErrCovered says that the work did not run, and does not have to: another caller waits for the name, and its run
// begins after this moment.
var ErrCovered = errors.New("coalesce: the run of a waiting caller covers this call")

// Group coalesces calls under the locks of one Locker. It is safe for concurrent use.
type Group struct{ locks, waiters *core.Locker }

// New returns a Group. The options are those of the lock under which work runs. With [core.WithDedup], New is
// [core.ErrInvalid]: the marker of the first run would keep the waiter from running. [core.OnUnavailable] has no effect:
// work does not run while the lock service does not answer, because the group is for all processes.
func New(l *core.Locker, opts ...core.Option) (*Group, error) {
	locks, err := l.With(opts...)
	if err != nil {
		return nil, err
	}
	if window, _ := locks.Dedup(); window > 0 {
		return nil, fmt.Errorf("%w: coalesce: with WithDedup the call that waits would never run", core.ErrInvalid)
	}
	// Locks of one holder that are free when they are given up, whatever the defaults are.
	waiters, err := locks.With(core.WithTemplate("coalesce"), core.WithLimit(1), core.WithMaxHold(0), core.WithMinHold(0),
		core.OnUnavailable(core.FailClosed))
	if err != nil {
		return nil, err
	}
	return &Group{locks, waiters}, nil
}

// Call says what a call of [Group.Do] is about.
type Call struct {
	// Name is the name to lock.
	Name string
	// Work is what is done, such as "reindex". A call for other work under the same name is not covered by it.
	Work string
	// Self is who calls, such as the ID of a task that its queue may deliver twice: at most 256 bytes. It is the label of the
	// locks. A waiting call with the same Self is an earlier attempt, which may have died. It covers nothing, and Do
	// waits for its place. By default, calls are different ones.
	Self string
	// Wait is how long to wait for the name, as with [core.WithWait]. The default is not to wait.
	Wait time.Duration
}

// Do runs work under the lock of the call's name. If somebody holds that, it waits, and runs then. If another call
// for the same work waits already, Do returns [ErrCovered] at once. So any number of calls during a run lead to exactly
// one more run.
//
// Other errors are those of [core.Locker.Do]. A call that was covered shares the fate of the one that waits: if that
// one gives up, and is not made again, there is no run.
func (g *Group) Do(ctx context.Context, c Call, work func(context.Context) error) error {
	if work == nil {
		return fmt.Errorf("%w: coalesce: nil function", core.ErrInvalid)
	}
	left := remaining(c.Wait)
	waiter, err := g.lineUp(ctx, c, left)
	if err != nil {
		return err
	}
	// Where it is given up below, this second time does nothing.
	defer func() { _ = waiter.Release(context.WithoutCancel(ctx)) }()
	return g.locks.Do(ctx, c.Name, func(ctx context.Context) error {
		if err := waiter.Release(ctx); err != nil {
			return err
		}
		return work(ctx)
	}, core.WithLabel(c.Self), core.WithWait(left()))
}

// lineUp makes the caller the one that waits.
//
// The waiter's lock is given up once its holder has the name, and before its work begins. So whoever finds it taken knows
// that a run will begin after this moment. What must not happen is that a call is covered and no run begins after it.
// The interleavings behind the order of things:
//
//  1. A duplicate looks while the waiter gets the name. Its look comes before the waiter's lock is free at the
//     lock service, and that before the work: the run covers it. After that it finds the lock free, and waits itself.
//  2. The waiter gives its lock up and does not learn whether it did. Then the lock may be seen as taken while the
//     work runs. So the work does not run.
//  3. A look must not be answered by another call's that was under way before: what that saw may be older than this
//     call. TryAcquire asks for itself, or knows that this process has the lock.
//  4. The waiter dies. Until its lock has run out duplicates are covered in trust of it. A queue delivers its task again:
//     that one finds its own self there, covers nothing, and waits. Then the first that comes is the waiter.
//  5. The waiter gives up when its time is over. If its queue does not bring it again, that stands for all that it covered.
//  6. The waiter's lock is lost while its holder waits. A second caller becomes the waiter. The first learns of it
//     when it gives the lock up: as in 2.
//
// Beyond reach is a waiter's lock that is taken after its caller has given up: a command that was lost on the way,
// and executed when that same caller, come again, runs already. core deletes such a grant when it learns of it, and it
// is gone within one TTL.
func (g *Group) lineUp(ctx context.Context, c Call, left func() time.Duration) (*core.Lease, error) {
	place, label := c.place(), core.WithLabel(c.Self)
	waiter, err := g.waiters.TryAcquire(ctx, place, label)
	held, ok := errors.AsType[*core.HeldError](err)
	switch {
	case ok && (c.Self == "" || held.Label != c.Self):
		return nil, ErrCovered
	case ok:
		return g.waiters.Acquire(ctx, place, label, core.WithWait(left()))
	default:
		return waiter, err
	}
}

// remaining counts down from wait.
func remaining(wait time.Duration) func() time.Duration {
	if wait <= 0 || wait == core.WaitForever { // core refuses what is negative
		return func() time.Duration { return wait }
	}
	end := time.Now().Add(wait)
	return func() time.Duration { return max(0, time.Until(end).Truncate(time.Millisecond)) }
}

// place is the name of the waiter's lock. No key makes it: in names of keys two hexadecimal digits or "sha256-" follow a
// '%'. It is no longer than the names that core takes.
func (c Call) place() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", c.Work, c.Name))
	name, end := c.Name, "%waiter-"+hex.EncodeToString(sum[:])
	head := min(len(name), key.MaxName-len(end))
	for head > 0 && head < len(name) && !utf8.RuneStart(name[head]) {
		head--
	}
	return name[:head] + end
}
