package drivertest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// grant acquires c, or fails the case. Where a quorum decides, a node may be late by Slow with the release before.
func (e *env) grant(d driver.Driver, c driver.Claim) driver.Grant {
	e.Helper()
	for end := time.Now().Add(e.Slow); ; e.sleep(time.Millisecond) {
		g, err := e.again(c, d.Acquire)
		if driver.Explain(err).Held != nil && time.Now().Before(end) {
			continue
		}
		if err != nil {
			e.Fatalf("acquire %q: %v", c.Name, err)
		}
		return g
	}
}

// wait waits until c is granted. It may run on any goroutine.
func (e *env) wait(d driver.Driver, c driver.Claim) (driver.Grant, error) { return e.again(c, d.Wait) }

// again makes a call until it is answered, for a long time, as core does: a machine that is busy may be too slow for a
// client's bounds, and after a cut a client may not be connected again.
func (e *env) again(c driver.Claim, call func(context.Context, driver.Claim) (driver.Grant, error)) (driver.Grant, error) {
	for try := 1; ; try++ {
		g, err := call(e.ctx, c)
		if !driver.Explain(err).Again() || try == tries || e.ctx.Err() != nil {
			return g, err
		}
		time.Sleep(e.ttl / 100)
	}
}

// answered makes a call until it is answered, and has a new one made when core would.
func (e *env) answered(c driver.Claim, call func(context.Context) error) error {
	_, err := e.again(c, func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
		ctx, cancel := context.WithTimeout(ctx, driver.Patience(c.TTL))
		defer cancel()
		return driver.Grant{}, call(ctx)
	})
	return err
}

// refused fails the case unless c is refused.
func (e *env) refused(d driver.Driver, c driver.Claim, why string) {
	e.Helper()
	_ = e.refusal(d, c, why)
}

// refusal fails the case unless c is refused, and returns what it is told.
func (e *env) refusal(d driver.Driver, c driver.Claim, why string) *driver.Held {
	e.Helper()
	_, err := e.again(c, d.Acquire)
	held, ok := errors.AsType[*driver.Held](err)
	if !ok {
		e.Fatalf("%s: not refused: %v", why, err)
	}
	return held
}

// ends releases c until that is answered. It may be over before.
func (e *env) ends(d driver.Driver, c driver.Claim, what string) {
	e.Helper()
	err := e.answered(c, func(ctx context.Context) error { return d.Release(ctx, c) })
	if err != nil && !errors.Is(err, driver.ErrNotOwner) {
		e.Fatalf("%s: release %q: %v", what, c.Name, err)
	}
}

// release releases what c owns.
func (e *env) release(d driver.Driver, c driver.Claim) {
	e.Helper()
	e.noError(d.Release(e.ctx, c))
}

// leaves releases c, which owns nothing.
func (e *env) leaves(d driver.Driver, c driver.Claim, what string) {
	e.Helper()
	if err := d.Release(e.ctx, c); !errors.Is(err, driver.ErrNotOwner) {
		e.Fatalf("%s: a release by one who owns nothing: %v", what, err)
	}
}

func (e *env) renew(d driver.Driver, c driver.Claim) error {
	errs := d.Renew(e.ctx, []driver.Claim{c})
	if len(errs) != 1 {
		e.Errorf("%d answers to one renewal", len(errs))
		return errors.New("no answer")
	}
	return errs[0]
}

// owns says whether c's token owns its name, and changes nothing.
func (e *env) owns(d driver.Driver, c driver.Claim) bool {
	e.Helper()
	asks := c
	asks.TTL = 0
	err := e.answered(c, func(ctx context.Context) error { return d.Renew(ctx, []driver.Claim{asks})[0] })
	if err != nil && !errors.Is(err, driver.ErrNotOwner) {
		e.Fatalf("verify: %v", err)
	}
	return err == nil
}

// free fails the case unless the name can be had right now: an entry that was left in the queue would live for longer.
func (e *env) free(name string) {
	e.Helper()
	d, c := e.Driver(), e.claim(name)
	e.grant(d, c)
	e.release(d, c)
}

// freeAfter waits until somebody new gets the name, for at most d, and releases it.
func (e *env) freeAfter(name string, d time.Duration, what string) {
	e.Helper()
	other, c := e.Driver(), e.long(name)
	e.within(d, what, func() {
		e.eventually(what, func() bool {
			_, err := e.again(c, other.Acquire)
			if err != nil && driver.Explain(err).Held == nil {
				e.Fatalf("%s: %v", what, err)
			}
			return err == nil
		})
	})
	e.release(other, c)
}

// owner is a process that owns a name.
type owner struct {
	e *env
	d driver.Driver
	c driver.Claim
}

// holds has d own the name until its release, or the end of the case.
func (e *env) holds(d driver.Driver, name string) owner {
	e.Helper()
	c := e.lasting(name)
	c.Label = "who"
	e.grant(d, c)
	return owner{e, d, c}
}

func (o owner) release() {
	o.e.Helper()
	o.e.release(o.d, o.c)
}

// waiter is a Wait on a goroutine of its own. It begins again after an outcome that is not known, as core
// does.
type waiter struct {
	e      *env
	d      driver.Driver
	c      driver.Claim
	cancel context.CancelFunc
	over   chan struct{}
	first  chan struct{} // closed by the first refusal
	began  time.Time     // the last call of Wait

	// What it came to, and when, once over is closed.
	g   driver.Grant
	err error
	at  time.Time

	mu    sync.Mutex // protects heard
	heard []driver.Held
}

// waits begins to wait, and returns once c is in the queue, or has its answer.
func (e *env) waits(d driver.Driver, c driver.Claim) *waiter {
	e.Helper()
	if c.Label == "" && e.Slow > 0 {
		c.Label = "waits, " + strings.TrimPrefix(c.Token, tokenPrefix) // by which it is found
	}
	w := e.begins(d, c)
	select {
	case <-w.first:
		time.Sleep(e.Slow)
		w.queues()
	case <-w.over:
	}
	return w
}

// queues waits until the entry is seen in the queue, or the call has its answer, for a backend that can show its queue and
// may take longer than Slow on a busy machine.
func (w *waiter) queues() {
	if w.e.Slow == 0 || w.e.shows == nil || !w.e.can.Queue {
		return
	}
	for range tries {
		info, err := w.e.shows.Inspect(w.e.ctx, w.c.Name)
		if w.ended() || err == nil && slices.ContainsFunc(info.Line, func(i inspect.WaiterInfo) bool { return i.Alive && i.Label == w.c.Label }) {
			return
		}
		time.Sleep(w.e.ttl / 100)
	}
}

// begins begins to wait.
func (e *env) begins(d driver.Driver, c driver.Claim) *waiter {
	ctx, cancel := context.WithCancel(e.ctx)
	w := &waiter{e: e, d: d, c: c, cancel: cancel, over: make(chan struct{}), first: make(chan struct{})}
	var once sync.Once
	w.c.Heard = func(h *driver.Held) {
		w.mu.Lock()
		w.heard = append(w.heard, *h)
		w.mu.Unlock()
		once.Do(func() { close(w.first) })
	}
	e.calls.Go(func() {
		defer close(w.over)
		for {
			w.began = time.Now()
			w.g, w.err = d.Wait(ctx, w.c)
			w.at = time.Now()
			if ctx.Err() != nil || !driver.Explain(w.err).Again() {
				return
			}
			time.Sleep(e.ttl / 200) // a broken connection
		}
	})
	return w
}

// ended says whether Wait has returned.
func (w *waiter) ended() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// granted waits for the grant, and fails the case if that takes longer than d.
func (w *waiter) granted(d time.Duration, what string) driver.Grant {
	w.e.Helper()
	defer w.cancel()
	w.e.within(d, what, func() {
		select {
		case <-w.over:
		case <-time.After(d + w.e.slack() + time.Second):
		}
	})
	if !w.ended() {
		w.cancel()
		<-w.over
		w.e.Fatalf("%s still waits: %v", what, w.err)
	}
	if w.err != nil {
		w.e.Fatalf("%s: %v", what, w.err)
	}
	return w.g
}

// stop ends the call, which must not have had an answer, and leaves the entry in the queue.
func (w *waiter) stop(what string) {
	w.e.Helper()
	if w.ended() {
		w.e.Fatalf("%s waits no more: %+v, %v", what, w.g, w.err)
	}
	w.cancel()
	<-w.over
	_, ok := errors.AsType[*driver.Held](w.err)
	if !ok && w.e.Slow == 0 { // a look may be under way as ctx ends
		w.e.Fatalf("%s: the end of its context gave %+v, %v", what, w.g, w.err)
	}
}

// release releases what was granted.
func (w *waiter) release() {
	w.e.Helper()
	w.e.release(w.d, w.c)
}

// queue puts c in the queue, and nobody listens there.
func (e *env) queue(d driver.Driver, c driver.Claim, what string) {
	e.Helper()
	e.waits(d, c).stop(what)
}

// said returns the refusals that were heard so far.
func (w *waiter) said() []driver.Held {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]driver.Held(nil), w.heard...)
}

// nothingLeft waits until the service keeps nothing of what the case did, if that can be seen.
func (e *env) nothingLeft() {
	e.Helper()
	if e.Leftovers == nil {
		return
	}
	var left []string
	for range 1000 {
		if left = e.Leftovers(); len(left) == 0 {
			return
		}
		e.sleep(e.ttl / 100)
	}
	e.Errorf("left behind: %q", left[:min(len(left), 10)])
}

// connect opens a backend over connections that the case may break, or over a Link.
func (e *env) connect() (driver.Driver, []Wire) {
	if e.Through == nil {
		l := NewLink(e.Driver())
		return l, []Wire{l}
	}
	d, through := e.Through()
	return e.opened(d), through
}
