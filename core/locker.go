package core

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Locker gives out leases of names. It is safe for concurrent use, and cheap to share:
// one Locker serves a whole process.
type Locker struct {
	engine *engine
	cfg    *config
	once   *config // cfg, for TryAcquire
}

func newLocker(r *engine, cfg *config) *Locker {
	once := *cfg
	once.wait = 0
	return &Locker{r, cfg, &once}
}

// New returns a Locker on the given backend. It does no I/O. It returns [ErrInvalid] if
// the backend was made with arguments that cannot work, or for an option that cannot.
//
// Close it when the process ends, so that nobody has to wait for what it holds.
func New(d driver.Driver, opts ...NewOption) (*Locker, error) {
	if d == nil {
		return nil, invalidf("driver: nil")
	}
	if v, ok := d.(driver.Validator); ok {
		if err := v.Validate(); err != nil {
			return nil, invalidf("driver: %v", err)
		}
	}
	base := defaults()
	cfg, err := with(&base, opts, d.Capabilities())
	if err != nil {
		return nil, err
	}
	return newLocker(newEngine(d, cfg), cfg), nil
}

// With returns a Locker of the same lock service with other defaults. It shares everything
// else with l, names and re-entry too, and closing either closes both. Options that
// cannot work are [ErrInvalid].
func (l *Locker) With(opts ...Option) (*Locker, error) {
	cfg, err := l.resolve(opts)
	if err != nil {
		return nil, err
	}
	return newLocker(l.engine, cfg), nil
}

var errNoLocker = invalidf("Locker: nil, or not made by New")

// none says that there is no Locker: the error of New was ignored.
func (l *Locker) none() bool { return l == nil || l.engine == nil }

func (l *Locker) resolve(opts []Option) (*config, error) {
	if l.none() {
		return nil, errNoLocker
	}
	if len(opts) == 0 {
		return l.cfg, nil
	}
	return with(l.cfg, opts, l.engine.can)
}

// Acquire waits until it has a lease of name. ctx bounds the acquisition only: the lease
// lives on until it is released, lost, or held for as long as [WithMaxHold] allows, or the Locker is
// closed. It is renewed until then, so a program that forgets to release it keeps the name. Name is 1 to 200 bytes of UTF-8 without braces, spaces and control characters.
//
// It returns [ErrHeld] if the wait budget of [WithWait] ran out while the name was held;
// ctx's error, joined with ErrHeld or [ErrUnavailable], whichever was last known, if ctx
// ended; ErrUnavailable if the backend gave no answer for a whole TTL; [ErrDuplicate], with
// [WithDedup], if the work is finished; [ErrClosed]; and [ErrInvalid], before anything is
// sent. Whatever it returns but nil, nothing is left behind that outlives one TTL.
func (l *Locker) Acquire(ctx context.Context, name string, opts ...Option) (*Lease, error) {
	cfg, err := l.resolve(opts)
	if err != nil {
		return nil, err
	}
	return l.acquire(ctx, name, cfg)
}

// TryAcquire is Acquire that never waits for another holder: it makes one attempt, bounded
// by a third of the TTL and at most 2 s, and answers [ErrHeld] at once. Where another
// goroutine of this process is asking for the same name already, or has it, that answer
// comes without a command of its own. [WithWait] does nothing here.
func (l *Locker) TryAcquire(ctx context.Context, name string, opts ...Option) (*Lease, error) {
	cfg, err := l.resolve(opts)
	if err != nil {
		return nil, err
	}
	if len(opts) == 0 {
		cfg = l.once
	} else if cfg != l.cfg {
		cfg.wait = 0
	}
	return l.acquire(ctx, name, cfg)
}

// Dedup returns what [WithDedup] and [WithDedupScope] say in New and With, for middleware: 0 and "" are
// the defaults.
func (l *Locker) Dedup() (window time.Duration, scope string) {
	if l.none() {
		return 0, ""
	}
	return l.cfg.dedup, l.cfg.scope
}

// Close refuses new work, fails those who wait with [ErrClosed], and ends the contexts of
// all leases with the same cause. It keeps renewing each lease until its Release, or the
// Do that it belongs to, has returned: nothing is released under work that still runs.
//
// It returns nil when that is done. If ctx ends first, what is still in use is left to its
// TTL, and the error says how many leases that is. It can be called again.
func (l *Locker) Close(ctx context.Context) error {
	if l.none() {
		return errNoLocker
	}
	return l.engine.close(ctx)
}

// Format prints no more than that it is a Locker, for every verb: what it holds has tokens.
func (l *Locker) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "core.Locker") // fmt has no way to return the error
}
