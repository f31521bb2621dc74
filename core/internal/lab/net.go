// Package lab has a network whose faults a test decides, on the new contract. With a memlock.Store behind it, and a Net for each
// process, core is tested in virtual time through its public API.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
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
	HeldBack           // returns only after [Net.Deliver], even if ctx ends; Deliver executes it
	ReplyHeldBack      // executed; returns only after [Net.Deliver], even if ctx ends
	RequestLate        // silent; [Net.Deliver] executes it, and its reply is lost
)

// ErrReset is the error of a call whose fate is [ReplyReset].
var ErrReset = fmt.Errorf("lab: %w", &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET})

// Net is a driver.Driver that reaches another one over a bad network. The test decides what
// happens to each call. One Net stands for the connection of one process. Any number of
// goroutines may use it.
type Net struct {
	far driver.Driver

	mu        sync.Mutex // protects the fields below
	next      map[Op][]Fate
	all       map[Op]Fate
	request   time.Duration
	reply     time.Duration
	calls     map[Op]int
	heldBack  []func()
	lastClaim driver.Claim

	detached func(context.Context) context.Context // of a prompt one
}

var (
	_ driver.Closer = (*Net)(nil)
	_ ranked.Node   = (*Net)(nil)
)

// New returns a Net to d. At first, it delivers every call.
func New(d driver.Driver) *Net {
	return &Net{far: d, next: make(map[Op][]Fate), all: make(map[Op]Fate), calls: make(map[Op]int)}
}

// Prompt makes l one whose calls return when their ctx ends, whatever becomes of the command: it may be executed much later. That is how the
// clients of most servers are. The command is executed in what detached makes of ctx, which may be used again once the call has returned.
func (l *Net) Prompt(detached func(context.Context) context.Context) { l.detached = detached }

// leftKey is of the *atomic.Bool that says whether the caller of a command has left.
type leftKey struct{}

// Left takes the context that a command has at the far side. What it returns says whether the caller has left: that of a prompt Net may.
func Left(ctx context.Context) func() bool {
	if left, ok := ctx.Value(leftKey{}).(*atomic.Bool); ok {
		return left.Load
	}
	return func() bool { return false }
}

// Next decides the fates of the next calls of a kind, one fate for each call. It goes before
// [Net.All].
func (l *Net) Next(op Op, fates ...Fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next[op] = append(l.next[op], fates...)
}

// All decides the fate of every later call of the given kinds, or of all kinds if none is given.
func (l *Net) All(f Fate, ops ...Op) {
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
func (l *Net) Delay(request, reply time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.request, l.reply = request, reply
}

// Drop loses every later request of the given kinds, or of all.
func (l *Net) Drop(ops ...Op) { l.All(RequestLost, ops...) }

// Hold holds every later call of the given kinds back, or of all, until Deliver or Heal.
func (l *Net) Hold(ops ...Op) { l.All(HeldBack, ops...) }

// Deliver delivers the calls that were held back, in order, and returns how many there were.
func (l *Net) Deliver() int {
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
func (l *Net) Heal() {
	l.mu.Lock()
	clear(l.next)
	clear(l.all)
	l.request, l.reply = 0, 0
	l.mu.Unlock()
	l.Deliver()
}

// Calls returns how many calls of a kind were made.
func (l *Net) Calls(op Op) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[op]
}

// LastClaim returns the claim of the last call of Acquire, Wait or Release.
func (l *Net) LastClaim() driver.Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastClaim
}

// Capabilities implements driver.Driver.
func (l *Net) Capabilities() driver.Capabilities {
	can := l.far.Capabilities()
	can.Punctual = l.detached != nil // otherwise a call that is held back outlives its ctx
	return can
}

// Acquire implements driver.Driver. Its fate is that of [OpAcquire].
func (l *Net) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	l.claim(c)
	return through(ctx, l, OpAcquire, func(ctx context.Context) (driver.Grant, error) { return l.far.Acquire(ctx, c) })
}

// errPlain is for what is no node of package redlock with a queue.
var errPlain = fmt.Errorf("lab: what is behind the network has no ranks: %w", errors.ErrUnsupported)

// AcquireRanked implements ranked.Node. Its fate is that of [OpAcquire].
func (l *Net) AcquireRanked(ctx context.Context, c ranked.Claim) (driver.Grant, error) {
	l.claim(c.Claim)
	return through(ctx, l, OpAcquire, func(ctx context.Context) (driver.Grant, error) {
		if n, ok := l.far.(ranked.Node); ok {
			return n.AcquireRanked(ctx, c)
		}
		return l.far.Acquire(ctx, c.Claim)
	})
}

// WaitRanked implements ranked.Node. Its fate is that of [OpWait].
func (l *Net) WaitRanked(ctx context.Context, c ranked.Claim) error {
	l.claim(c.Claim)
	_, err := through(ctx, l, OpWait, func(ctx context.Context) (struct{}, error) {
		if n, ok := l.far.(ranked.Node); ok {
			return struct{}{}, n.WaitRanked(ctx, c)
		}
		return struct{}{}, errPlain
	})
	return err
}

// Rank implements ranked.Node. Its fate is that of [OpRank].
func (l *Net) Rank(ctx context.Context, name string) (uint64, error) {
	return through(ctx, l, OpRank, func(ctx context.Context) (uint64, error) {
		if n, ok := l.far.(ranked.Node); ok {
			return n.Rank(ctx, name)
		}
		return 0, errPlain
	})
}

// Renew implements driver.Driver. All its claims have one fate, that of [OpRenew].
func (l *Net) Renew(ctx context.Context, claims []driver.Claim) []error {
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
func (l *Net) Release(ctx context.Context, c driver.Claim) error {
	l.claim(c)
	_, err := through(ctx, l, OpRelease, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, l.far.Release(ctx, c)
	})
	return err
}

// Wait implements driver.Driver. Its fate is that of [OpWait].
func (l *Net) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	l.claim(c)
	return through(ctx, l, OpWait, func(ctx context.Context) (driver.Grant, error) { return l.far.Wait(ctx, c) })
}

// Close implements driver.Closer. It always reaches the far side.
func (l *Net) Close(ctx context.Context) error {
	if c, ok := l.far.(driver.Closer); ok {
		return c.Close(ctx)
	}
	return nil
}

// Format prints only that this is a Net, for every verb: its claims contain tokens.
func (l *Net) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "lab.Net") // fmt has no way to return the error
}

func (l *Net) claim(c driver.Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastClaim = c
}

// fate counts a call and decides what happens to it.
func (l *Net) fate(op Op) (f Fate, request, reply time.Duration) {
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
func through[T any](ctx context.Context, l *Net, op Op, call func(context.Context) (T, error)) (T, error) {
	var none T
	if err := driver.NotSent(ctx.Err()); err != nil {
		return none, err
	}
	if l.detached == nil {
		return deliver(ctx, l, op, call)
	}
	left := new(atomic.Bool)
	own, hangUp := context.WithCancel(context.WithValue(l.detached(ctx), leftKey{}, left))
	defer hangUp()
	answered := make(chan outcome[T], 1)
	go func() {
		v, err := deliver(own, l, op, call)
		answered <- outcome[T]{v, err}
	}()
	select {
	case o := <-answered:
		return o.value, o.err
	case <-ctx.Done():
	}
	hangUp()
	select {
	case o := <-answered: // nothing was under way
		return o.value, o.err
	case <-time.After(1):
		left.Store(true)
		return none, errLeft
	}
}

// errLeft leaves open what the command did and may do yet.
var errLeft = fmt.Errorf("lab: the command is under way: %w", os.ErrDeadlineExceeded)

// deliver has a call meet its fate.
func deliver[T any](ctx context.Context, l *Net, op Op, call func(context.Context) (T, error)) (T, error) {
	var none T
	fate, request, reply := l.fate(op)
	far := context.WithoutCancel(ctx)
	if op == OpWait { // a waiter that hangs up ends the call on this side
		far = ctx
	}
	switch fate {
	case Refused:
		return none, driver.NotSent(driver.Unavailable(errors.New("lab: connection refused")))
	case RequestLost:
		return none, silence(ctx)
	case HeldBack:
		return heldBack(l, func() (T, error) { return call(far) })
	case RequestLate:
		l.mu.Lock()
		l.heldBack = append(l.heldBack, func() { _, _ = call(far) })
		l.mu.Unlock()
		return none, silence(ctx)
	case ReplyHeldBack:
		v, err := call(far)
		return heldBack(l, func() (T, error) { return v, err })
	case ReplyLost, ReplyReset:
		lag(request)
		_, _ = call(far)
		if fate == ReplyReset {
			return none, ErrReset
		}
		return none, silence(ctx)
	default:
		lag(request)
		v, err := call(far)
		lag(reply)
		return v, err
	}
}

// silence is the error of a call that is not answered.
func silence(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// heldBack leaves the call to Deliver, and returns its outcome. The caller in core may be gone by that
// time.
func heldBack[T any](l *Net, call func() (T, error)) (T, error) {
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
