package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Op is a kind of call.
type Op string

// The kinds of calls.
const (
	OpAcquire Op = "acquire"
	OpRenew   Op = "renew"
	OpRelease Op = "release"
	OpWait    Op = "wait"
	OpRank    Op = "rank"
)

// Fate is what happens to one call.
type Fate int

// The fates of calls. "Silent" means that the call returns only when its ctx ends.
const (
	Delivered     Fate = iota
	Refused            // never sent: driver.ErrNotSent
	RequestLost        // not executed; silent
	ReplyLost          // executed; silent
	ReplyReset         // executed; the error says that the connection broke
	HeldBack           // returns only after [Link.Deliver], even if ctx ends; Deliver executes it
	ReplyHeldBack      // executed; returns only after [Link.Deliver], even if ctx ends
	RequestLate        // silent; [Link.Deliver] executes it, and its reply is lost
)

// ErrReset is the error of a call whose fate is [ReplyReset].
var ErrReset = fmt.Errorf("redlock: %w", &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET})

// Link is a driver.Driver that reaches another one over a bad network. The test decides what
// happens to each call. One Link stands for the connection of one process. Any number of
// goroutines may use it.
type Link struct {
	far driver.Driver

	mu        sync.Mutex // protects the fields below
	next      map[Op][]Fate
	all       map[Op]Fate
	request   time.Duration
	reply     time.Duration
	calls     map[Op]int
	heldBack  []func()
	lastClaim driver.Claim
}

var (
	_ driver.Driver     = (*Link)(nil)
	_ driver.Ranker     = (*Link)(nil)
	_ driver.Validator  = (*Link)(nil)
	_ driver.IdleCloser = (*Link)(nil)
)

// NewLink returns a Link to d. At first, it delivers every call.
func NewLink(d driver.Driver) *Link {
	return &Link{far: d, next: make(map[Op][]Fate), all: make(map[Op]Fate), calls: make(map[Op]int)}
}

// Next decides the fates of the next calls of a kind, one fate for each call. It goes before
// [Link.All].
func (l *Link) Next(op Op, fates ...Fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next[op] = append(l.next[op], fates...)
}

// All decides the fate of every later call of the given kinds, or of all kinds if none is given.
func (l *Link) All(f Fate, ops ...Op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(ops) == 0 {
		ops = []Op{OpAcquire, OpRenew, OpRelease, OpWait}
	}
	for _, op := range ops {
		l.all[op] = f
	}
}

// Delay sets how long every later request, and every later reply, takes.
func (l *Link) Delay(request, reply time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.request, l.reply = request, reply
}

// Deliver delivers the calls that were held back, in order, and returns how many there were.
func (l *Link) Deliver() int {
	l.mu.Lock()
	calls := l.heldBack
	l.heldBack = nil
	l.mu.Unlock()
	for _, call := range calls {
		call()
	}
	return len(calls)
}

// Heal makes the network good again: it ends all fates and delays, and delivers the calls that were
// held back.
func (l *Link) Heal() {
	l.mu.Lock()
	clear(l.next)
	clear(l.all)
	l.request, l.reply = 0, 0
	l.mu.Unlock()
	l.Deliver()
}

// Calls returns how many calls of a kind were made.
func (l *Link) Calls(op Op) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[op]
}

// LastClaim returns the claim of the last call of Acquire or Release.
func (l *Link) LastClaim() driver.Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastClaim
}

// Capabilities implements driver.Driver. A Link is never Punctual.
func (l *Link) Capabilities() driver.Capabilities {
	can := l.far.Capabilities()
	can.Punctual = false // a call that is held back outlives its ctx
	return can
}

// Acquire implements driver.Driver. Its fate is that of [OpAcquire].
func (l *Link) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	l.claim(c)
	return through(ctx, l, OpAcquire, func(ctx context.Context) (driver.Grant, error) { return l.far.Acquire(ctx, c) })
}

// Renew implements driver.Driver. All its claims have one fate, that of [OpRenew].
func (l *Link) Renew(ctx context.Context, claims []driver.Claim) []error {
	errs, err := through(ctx, l, OpRenew, func(ctx context.Context) ([]error, error) {
		return l.far.Renew(ctx, claims), nil
	})
	if err != nil {
		errs = make([]error, len(claims))
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

// Release implements driver.Driver. Its fate is that of [OpRelease].
func (l *Link) Release(ctx context.Context, c driver.Claim) error {
	l.claim(c)
	_, err := through(ctx, l, OpRelease, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, l.far.Release(ctx, c)
	})
	return err
}

// Wait implements driver.Queuer. Its fate is that of [OpWait]. If the far side is no Queuer, Wait
// fails, so that core polls.
func (l *Link) Wait(ctx context.Context, c driver.Claim) error {
	_, err := through(ctx, l, OpWait, func(ctx context.Context) (struct{}, error) {
		if q, ok := l.far.(driver.Queuer); ok {
			return struct{}{}, q.Wait(ctx, c)
		}
		return struct{}{}, errors.ErrUnsupported
	})
	return err
}

// Rank implements driver.Ranker. Its fate is that of [OpRank]. If the far side is no Ranker, Rank fails.
func (l *Link) Rank(ctx context.Context, name string) (uint64, error) {
	return through(ctx, l, OpRank, func(ctx context.Context) (uint64, error) {
		if r, ok := l.far.(driver.Ranker); ok {
			return r.Rank(ctx, name)
		}
		return 0, errors.ErrUnsupported
	})
}

// Validate implements driver.Validator. It asks the far side.
func (l *Link) Validate() error {
	if v, ok := l.far.(driver.Validator); ok {
		return v.Validate()
	}
	return nil
}

// CloseIdle implements driver.IdleCloser. It always reaches the far side.
func (l *Link) CloseIdle(ctx context.Context) error {
	if c, ok := l.far.(driver.IdleCloser); ok {
		return c.CloseIdle(ctx)
	}
	return nil
}

// Format prints only that this is a Link, for every verb: its claims contain tokens.
func (l *Link) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "drivertest.Link") // fmt has no way to return the error
}

func (l *Link) claim(c driver.Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastClaim = c
}

// fate counts a call and decides what happens to it.
func (l *Link) fate(op Op) (f Fate, request, reply time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[op]++
	f = l.all[op]
	if next := l.next[op]; len(next) > 0 {
		f, l.next[op] = next[0], next[1:]
	}
	return f, l.request, l.reply
}

type outcome[T any] struct {
	value T
	err   error
}

// through makes a call over the link. The far side does not know the caller's ctx, just as a server
// does not.
func through[T any](ctx context.Context, l *Link, op Op, call func(context.Context) (T, error)) (T, error) {
	var none T
	if err := driver.NotSent(ctx.Err()); err != nil {
		return none, err
	}
	fate, request, reply := l.fate(op)
	far := context.WithoutCancel(ctx)
	if op == OpWait { // a waiter that hangs up ends the call on this side
		far = ctx
	}
	switch fate {
	case Refused:
		return none, driver.NotSent(driver.Unavailable(errors.New("redlock: connection refused")))
	case RequestLost:
		return none, silence(ctx, op)
	case HeldBack:
		return heldBack(l, func() (T, error) { return call(far) })
	case RequestLate:
		l.mu.Lock()
		l.heldBack = append(l.heldBack, func() { _, _ = call(far) })
		l.mu.Unlock()
		return none, silence(ctx, op)
	case ReplyHeldBack:
		v, err := call(far)
		return heldBack(l, func() (T, error) { return v, err })
	case ReplyLost, ReplyReset:
		lag(request)
		_, _ = call(far)
		if fate == ReplyReset {
			return none, ErrReset
		}
		return none, silence(ctx, op)
	default:
		lag(request)
		v, err := call(far)
		lag(reply)
		return v, err
	}
}

// silence is the error of a call that is not answered. From a Wait, ctx's own error would say that the place is queued.
func silence(ctx context.Context, op Op) error {
	<-ctx.Done()
	if op == OpWait {
		return driver.UnknownOutcome(ctx.Err())
	}
	return ctx.Err()
}

// heldBack leaves the call to Deliver, and returns its outcome. The caller in core may be gone by that
// time.
func heldBack[T any](l *Link, call func() (T, error)) (T, error) {
	answer := make(chan outcome[T], 1)
	l.mu.Lock()
	l.heldBack = append(l.heldBack, func() {
		v, err := call()
		answer <- outcome[T]{v, err}
	})
	l.mu.Unlock()
	o := <-answer
	return o.value, o.err
}

func lag(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}
