package core

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Locker gives out leases of names. It is safe for concurrent use. One Locker serves a whole
// process.
type Locker struct {
	engine *engine
	cfg    *config
}

// New returns a Locker on the given backend. It does no I/O. It returns [ErrInvalid] if an option,
// or an argument that the backend was made with, cannot work.
//
// Close the Locker when the process ends. Then nobody has to wait for the names that it holds.
func New(d driver.Driver, opts ...NewOption) (*Locker, error) {
	if d == nil {
		return nil, invalidf("driver: nil")
	}
	if err := d.Capabilities().Err; err != nil {
		return nil, invalidf("driver: %v", err)
	}
	base := defaults()
	cfg, err := with(&base, opts, d.Capabilities())
	if err != nil {
		return nil, err
	}
	return &Locker{newEngine(d, cfg), cfg}, nil
}

// With returns a Locker of the same lock service with other defaults. It shares everything else
// with l, including names and re-entry. Closing one of them closes both. Options that cannot work
// are [ErrInvalid].
func (l *Locker) With(opts ...Option) (*Locker, error) {
	cfg, err := l.resolve(opts)
	if err != nil {
		return nil, err
	}
	return &Locker{l.engine, cfg}, nil
}

var errNoLocker = invalidf("Locker: nil, or not made by New")

// none says that there is no Locker, because the error of New was ignored.
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

// Dedup returns what New and With were told by [WithDedup] and [WithDedupScope], for middleware.
// The defaults are 0 and "".
func (l *Locker) Dedup() (window time.Duration, scope string) {
	if l.none() {
		return 0, ""
	}
	return l.cfg.Dedup, l.cfg.Scope
}

// Wait returns what New and With were told by [WithWait], for middleware. The default is [WaitForever].
func (l *Locker) Wait() time.Duration {
	if l.none() {
		return 0
	}
	return l.cfg.wait
}

// Close refuses new work, fails waiting calls with [ErrClosed], and ends the contexts of all leases
// with the same cause. It releases nothing under work that still runs: it keeps renewing each lease
// until its Release, or the Do that it belongs to, has returned.
//
// It returns nil when all of that is done. If ctx ends first, the leases that are still in use are
// left to their TTL, and the error says how many they are. Close can be called again.
func (l *Locker) Close(ctx context.Context) error {
	if l.none() {
		return errNoLocker
	}
	return l.engine.close(ctx)
}

// Format prints "core.Locker" for every verb, because a Locker has tokens, which are secret.
func (l *Locker) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "core.Locker") // fmt has no way to return the error
}
