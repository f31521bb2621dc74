package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

// cutCases run core over real connections, which break at each step of each operation. What
// was held must not be freed by waiting for its end: its TTL is far longer than a case.
var cutCases = []testCase{
	{name: "AnAcquireSurvivesAConnectionCutAtEachStep", run: cutting(func(e *env, w *wire) {
		w.cut()
		x := w.acquire(core.WithRenewEvery(w.ttl / 200))
		w.heal()
		w.heldBy(x)
		e.noError(x.Release(e.Context()))
		w.freeBefore(x.ValidUntil())
	})},
	{name: "ARenewalSurvivesAConnectionCutAtEachStep", run: cutting(func(e *env, w *wire) {
		x := w.acquire(core.WithRenewEvery(w.ttl / 200))
		w.cut()
		e.eventually("a renewal is cut", w.wasCut)
		e.renewed(x)
		w.heal()
		w.heldBy(x)
		e.noError(x.Release(e.Context()))
	})},
	{name: "AReleaseSurvivesAConnectionCutAtEachStep", run: cutting(func(e *env, w *wire) {
		x := w.acquire()
		until := x.ValidUntil()
		w.cut()
		e.noError(x.Release(e.Context()))
		w.heal()
		w.freeBefore(until)
	})},
}

// cutSteps is how many requests of an operation are cut, one in each round. No operation of the
// backends here has more requests.
const cutSteps = 4

// wire is a process whose connections a case cuts, and one with a good connection.
type wire struct {
	e       *env
	ttl     time.Duration
	proxies []*faultproxy.Proxy
	cut     func()
	wasCut  func() bool
	locks   *core.Locker
	other   *core.Locker
}

// cutting runs a case twice for each step: the request is cut off before it arrives, and its reply is
// cut off.
func cutting(run func(e *env, w *wire)) func(*env) {
	return func(e *env) {
		if e.Through == nil {
			e.lacks("the harness has no network to cut")
		}
		d, proxies := e.Through()
		w := &wire{e: e, ttl: max(20*time.Second, e.ttl), proxies: proxies, locks: e.locker(d), other: e.locker(e.Driver())}
		w.release(w.acquire()) // connected, with what is loaded once
		for step := range cutSteps {
			for what, cut := range map[string]func(*faultproxy.Proxy, int){
				"request": (*faultproxy.Proxy).CutRequest, "reply": (*faultproxy.Proxy).CutReply,
			} {
				e.Logf("%s %d is cut", what, step+1)
				before := make([]int, len(proxies))
				w.cut = func() {
					for i, p := range proxies {
						before[i] = p.Requests()
						cut(p, step+1)
					}
				}
				w.wasCut = func() bool {
					for i, p := range proxies {
						if p.Requests()-before[i] > step {
							return true
						}
					}
					return false
				}
				run(e, w)
				w.heal()
			}
		}
	}
}

func (w *wire) heal() {
	for _, p := range w.proxies {
		p.Heal()
	}
}

// acquire is never told that its own grant belongs to somebody else, and never waits for the end of a
// TTL. It may meet an earlier release that is still on its way to the last nodes of a quorum.
func (w *wire) acquire(opts ...core.Option) *core.Lease {
	w.e.Helper()
	began := time.Now()
	mine := token()
	opts = append(opts, core.WithTTL(w.ttl), core.WithLabel(mine))
	x, err := w.locks.TryAcquire(w.e.Context(), "name", opts...)
	if held, ok := errors.AsType[*core.HeldError](err); ok && held.Label == mine {
		w.e.Error("held by itself")
	}
	if err != nil { // the client needs longer than one attempt to connect again
		x, err = w.locks.Acquire(w.e.Context(), "name", opts...)
	}
	w.e.noError(err)
	if time.Since(began) >= w.ttl {
		w.e.Error("granted by the end of a TTL only")
	}
	return x
}

func (w *wire) release(x *core.Lease) {
	w.e.Helper()
	w.e.noError(x.Release(w.e.Context()))
}

// heldBy fails the case unless the service says, to everybody, that x holds the name. A pool may
// still have connections that broke.
func (w *wire) heldBy(x *core.Lease) {
	w.e.Helper()
	w.e.renewed(x)
	w.e.eventually("others hear of the holder", func() bool {
		_, err := w.other.TryAcquire(w.e.Context(), "name")
		if err == nil {
			w.e.Fatal("two holders")
		}
		return errors.Is(err, core.ErrHeld)
	})
	w.e.noError(x.Err())
}

// freeBefore fails the case unless somebody else gets the name before the end of a TTL.
func (w *wire) freeBefore(end time.Time) {
	w.e.Helper()
	x, err := w.other.Acquire(w.e.Context(), "name", core.WithTTL(w.ttl))
	w.e.noError(err)
	if !time.Now().Before(end) {
		w.e.Error("the name came free by the end of its TTL only")
	}
	w.release(x)
}
