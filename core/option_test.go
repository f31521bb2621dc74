package core_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestImpossibleOptionsAreRefusedByNameBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		for name, rows := range map[string][][]core.Option{
			"WithTTL": {
				{core.WithTTL(0)}, {core.WithTTL(99 * time.Millisecond)}, {core.WithTTL(-time.Second)}, {core.WithTTL(math.MaxInt64)},
				{core.WithTTL(500 * time.Microsecond)},
			},
			"WithWait": {{core.WithWait(-1)}, {core.WithWait(time.Microsecond)}},
			"WithRenewEvery": {
				{core.WithRenewEvery(7 * time.Second)}, {core.WithRenewEvery(-time.Second)},
				{core.WithTTL(3 * time.Second), core.WithRenewEvery(2*time.Second + time.Millisecond)},
			},
			"WithMaxHold": {{core.WithMaxHold(time.Nanosecond)}, {core.WithMaxHold(math.MinInt64)}},
			"WithMinHold": {
				{core.WithMinHold(time.Nanosecond)}, {core.WithMinHold(-time.Hour)}, {core.WithMinHold(time.Hour), core.WithShared()},
				{core.WithLimit(2), core.WithMinHold(time.Hour)},
			},
			"WithLimit":      {{core.WithLimit(0)}, {core.WithLimit(-1)}, {core.WithLimit(1_000_001)}},
			"WithDedup":      {{core.WithDedup(-time.Hour)}, {core.WithDedup(math.MaxInt64 - 1)}},
			"WithDedupScope": {{core.WithDedupScope(strings.Repeat("x", 513))}},
			"WithLabel":      {{core.WithLabel("a\x00b")}, {core.WithLabel("a\xffb")}, {core.WithLabel(strings.Repeat("x", 257))}},
			"WithTemplate":   {{core.WithTemplate("a\nb")}},
			"option":         {{nil}},
		} {
			for _, opts := range rows {
				for _, err := range []error{
					second(b.locks.With(opts...)),
					second(b.locks.Acquire(b.Context(), "name", opts...)),
					second(b.locks.TryAcquire(b.Context(), "name", opts...)),
					second(core.New(memlock.New(), ofNew(opts)...)),
					b.locks.Do(b.Context(), "name", func(context.Context) error { panic("ran") }, opts...),
				} {
					b.says(err, core.ErrInvalid, name)
				}
			}
		}
		b.sent(0)
	})
}

func TestTheNearerOptionWinsAndARepeatReplaces(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		claimed := func(l *core.Locker, opts ...core.Option) time.Duration {
			b.ok(b.acquire(l, "name", opts...).Release(b.Context()))
			return b.link.LastClaim().TTL
		}
		derived, err := b.locks.With(core.WithTTL(2*time.Second), core.WithDedup(time.Hour), core.WithWait(time.Minute))
		b.ok(err)
		if window, scope := derived.Dedup(); window != time.Hour || scope != "" || derived.Wait() != time.Minute {
			b.Errorf("dedup for %s, in scope %q, waits for %s", window, scope, derived.Wait())
		}
		for want, got := range map[time.Duration]time.Duration{
			time.Second:     claimed(b.locks),
			2 * time.Second: claimed(derived),
			3 * time.Second: claimed(derived, core.WithTTL(3*time.Second)),
			5 * time.Second: claimed(derived, core.WithTTL(4*time.Second), core.WithTTL(5*time.Second)),
			6 * time.Second: claimed(b.locks, core.WithTTL(6*time.Second+999*time.Microsecond)),
		} {
			if got != want {
				b.Errorf("TTL %s, not %s", got, want)
			}
		}
	}, core.WithTTL(time.Second))
}

func TestTheDefaultLabelSaysWhoAndWhatFor(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	self := fmt.Sprintf("%s:%d", host, os.Getpid())
	route := core.WithOperation("POST /orders/:id/pay")
	for want, opts := range map[string][]core.Option{
		self:                           nil,
		self + " POST /orders/:id/pay": {route},
		self + " a?b?":                 {core.WithOperation("a\nb\xff")},
		"mine":                         {route, core.WithLabel("mine")},
		"mine, first":                  {core.WithLabel("mine, first"), route},
		"":                             {route, core.WithLabel("")},
	} {
		virtual(t, func(b *bench) {
			with, err := b.locks.With(opts...)
			b.ok(err)
			for _, acquire := range []func() *core.Lease{
				func() *core.Lease { return b.acquire(b.locks, "name", opts...) },
				func() *core.Lease { return b.acquire(with, "name") },
				func() *core.Lease { return b.acquire(with, "name", core.WithTemplate("x")) },
			} {
				b.ok(acquire().Release(b.Context()))
				if got := b.link.LastClaim().Label; got != want {
					b.Errorf("%q, not %q", got, want)
				}
			}
		})
	}
}

func TestOptionsStandInTheirPlace(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var told atomic.Int64
		observed := core.WithObserver(func(core.Event) { told.Add(1) })
		inside := core.Options(observed, core.WithTTL(2*time.Second), core.Options(observed))
		l := b.locker(b.link, core.WithTTL(time.Second), inside, core.WithLabel("mine"), core.WithMaxLeases(1))
		b.ok(b.acquire(l, "name").Release(b.Context()))
		synctest.Wait()
		if c := b.link.LastClaim(); c.TTL != 2*time.Second || c.Label != "mine" || told.Load() != 4 {
			b.Errorf("TTL %s, label %q, %d events", c.TTL, c.Label, told.Load())
		}
		for _, inside := range []core.NewOption{
			nil, core.WithTTL(0), core.WithObserver(nil), core.WithWorkContext(nil), core.WithMaxLeases(0), core.WithMaxWaiters(-1),
		} {
			b.is(second(core.New(b.store, core.Options(inside))), core.ErrInvalid)
		}
	})
}

func TestWithoutRenewalAndWithRenewEveryReplaceEachOther(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "a", core.WithRenewEvery(ttl), core.WithoutRenewal())
		<-x.Context().Done()
		y := b.acquire(b.locks, "b", core.WithoutRenewal(), core.WithTTL(3*time.Second), core.WithRenewEvery(2*time.Second)) // the most
		time.Sleep(3 * ttl)
		b.ok(y.Err())
	})
}

func TestWhatTheBackendLacksIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		locks := b.locker(&hooked{Driver: b.store, can: func(can *driver.Capabilities) {
			*can = driver.Capabilities{Backend: "plain", MinTTL: 2 * time.Second, MaxName: 10} // it can do nothing but lock
		}})
		broken := &hooked{Driver: b.store, can: func(can *driver.Capabilities) { can.Err = context.Canceled }}
		for want, err := range map[string]error{
			"WithDedup":   second(locks.With(core.WithDedup(time.Hour))),
			"WithMinHold": second(locks.With(core.WithMinHold(time.Second))),
			"WithShared":  second(locks.With(core.WithShared())),
			"WithLimit":   second(locks.With(core.WithLimit(2))),
			"fallback":    second(locks.With(core.OnUnavailable(core.LocalOnly))),
			"WithTTL":     second(locks.With(core.WithTTL(time.Second))),
			"name":        second(locks.TryAcquire(b.Context(), "elevenbytes")),
			"nil":         second(core.New(nil)),
			"driver":      second(core.New(broken)),
			"lain backe":  second(locks.TryAcquire(b.Context(), "name", core.WithDedup(time.Hour))),
		} {
			b.says(err, core.ErrInvalid, want)
		}
		b.gets(locks.TryAcquire(b.Context(), "ten--bytes", core.WithLimit(1), core.WithLabel(strings.Repeat("x", 256)), core.WithWait(10*365*24*time.Hour))) // which is exclusive
	})
}

// ofNew are the same options, for New.
func ofNew(opts []core.Option) (all []core.NewOption) {
	for _, o := range opts {
		all = append(all, o)
	}
	return all
}

func TestOneLeaseMoreThanTheProcessMayHaveIsRefusedUnasked(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		derived, err := b.locks.With(core.WithTTL(ttl))
		b.ok(err)
		x, y := b.acquire(b.locks, "a"), b.acquire(derived, "b")
		asked := b.commands()
		for _, err := range []error{
			second(b.locks.TryAcquire(b.Context(), "c")), second(derived.Acquire(b.Context(), "c")),
			b.locks.Do(b.Context(), "c", func(context.Context) error { panic("ran") }),
		} {
			b.says(err, core.ErrUnavailable, `acquire "c": lock service unavailable: not asked: WithMaxLeases(2)`)
			b.isNot(err, core.ErrHeld)
		}
		b.sent(asked)
		b.gets(b.locks.Acquire(x.Context(), "a"))
		b.ok(y.Release(b.Context()))
		b.ok(b.acquire(b.locks, "c").Release(b.Context()))
	}, core.WithMaxLeases(2))
}

func TestOneCallMoreThanMayWaitIsRefusedUnasked(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		held := b.all(b.other(), "a", "b")
		var waiting sync.WaitGroup
		for _, name := range []string{"a", "a", "b"} {
			waiting.Go(func() { b.gets(b.locks.Acquire(b.Context(), name)) })
		}
		synctest.Wait()
		b.says(second(b.locks.Acquire(b.Context(), "c")), core.ErrUnavailable, "WithMaxWaiters(3)")
		b.ok(b.acquire(b.locks, "c").Release(b.Context())) // who does not wait
		b.ok(held.Release(b.Context()))
		waiting.Wait()
		b.gets(b.locks.Acquire(b.Context(), "c"))
	}, core.WithMaxWaiters(3))
}
