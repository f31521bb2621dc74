package drivertest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Link is a connection to a backend that has none. Each call of the backend is one request on it.
type Link struct {
	far driver.Driver

	mu       sync.Mutex // protects the fields below
	requests int
	cuts     map[int]bool // by the number of the request: whether it arrives
	before   map[int]func()
	hole     bool
	there    time.Duration // how late requests arrive
	back     time.Duration // and answers
}

var (
	_ driver.Driver = (*Link)(nil)
	_ Wire          = (*Link)(nil)
)

// NewLink returns a connection to d. At first, it delivers everything.
func NewLink(d driver.Driver) *Link {
	return &Link{far: d, cuts: make(map[int]bool), before: make(map[int]func())}
}

// errReset is the error of a call whose connection broke.
var errReset = fmt.Errorf("drivertest: %w", &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET})

// CutRequest implements Wire.
func (l *Link) CutRequest(n int) { l.cut(n, false) }

// CutReply implements Wire.
func (l *Link) CutReply(n int) { l.cut(n, true) }

func (l *Link) cut(n int, arrives bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cuts[l.requests+n] = arrives
}

// Before implements Wire.
func (l *Link) Before(n int, do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before[l.requests+n] = do
}

// BlackHole implements Wire. It does not hold up calls that are under way.
func (l *Link) BlackHole(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hole = on
}

// BlackHoleNew implements Wire. There are no new connections.
func (l *Link) BlackHoleNew(bool) {}

// SetDelay implements Wire.
func (l *Link) SetDelay(toServer, toClient time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.there, l.back = toServer, toClient
}

// Requests implements Wire.
func (l *Link) Requests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests
}

// Heal implements Wire.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.cuts)
	clear(l.before)
	l.hole, l.there, l.back = false, 0, 0
}

// Capabilities implements driver.Driver.
func (l *Link) Capabilities() driver.Capabilities { return l.far.Capabilities() }

// send makes one request. far is the call, which the service executes even if its reply is cut.
func (l *Link) send(ctx context.Context, far func() error) error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return err
	}
	l.mu.Lock()
	l.requests++
	arrives, cut := l.cuts[l.requests]
	before := l.before[l.requests]
	hole, there, back := l.hole, l.there, l.back
	l.mu.Unlock()
	if before != nil {
		before()
	}
	switch {
	case hole:
		<-ctx.Done()
		return ctx.Err()
	case !cut:
		time.Sleep(there)
		defer time.Sleep(back)
		return far()
	case arrives:
		_ = far() // nobody hears of it
	}
	return errReset
}

// Acquire implements driver.Driver.
func (l *Link) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	err = l.send(ctx, func() (err error) { g, err = l.far.Acquire(ctx, c); return err })
	return g, err
}

// Wait implements driver.Driver. If its reply is cut, that is the one to its first look.
func (l *Link) Wait(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	l.mu.Lock()
	cut := l.cuts[l.requests+1]
	l.mu.Unlock()
	if cut {
		looked, stop := context.WithCancel(ctx)
		defer stop()
		c.Heard = func(*driver.Held) { stop() }
		return g, l.send(ctx, func() error { _, err := l.far.Wait(looked, c); return err })
	}
	err = l.send(ctx, func() (err error) { g, err = l.far.Wait(ctx, c); return err })
	return g, err
}

// Renew implements driver.Driver.
func (l *Link) Renew(ctx context.Context, claims []driver.Claim) (errs []error) {
	if err := l.send(ctx, func() error { errs = l.far.Renew(ctx, claims); return nil }); err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	return errs
}

// Release implements driver.Driver.
func (l *Link) Release(ctx context.Context, c driver.Claim) error {
	return l.send(ctx, func() error { return l.far.Release(ctx, c) })
}
