package core_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// falling is virtual for a process that can go on without the lock service.
func falling(t *testing.T, f func(b *bench), opts ...core.NewOption) {
	t.Helper()
	virtual(t, func(b *bench) {
		b.locks = b.locker(fallback.New(b.link), opts...)
		f(b)
	})
}

// localOnly is the bench's process, whose work goes on without the lock service.
func (b *bench) localOnly() *core.Locker {
	b.Helper()
	local, err := b.locks.With(core.OnUnavailable(core.LocalOnly))
	b.ok(err)
	return local
}

// degraded fails the test unless x is a degraded lease.
func (b *bench) degraded(x *core.Lease) {
	b.Helper()
	if !x.Degraded() || x.Fence() != 0 {
		b.Fatalf("degraded %v, fence %d", x.Degraded(), x.Fence())
	}
}

// outage has the backend's silence or refusal known, at no time's cost for those who come now.
func (b *bench) outage(f lab.Fate) {
	b.Helper()
	b.link.All(f)
	x := b.acquire(b.localOnly(), "another")
	b.degraded(x)
	b.ok(x.Release(b.Context()))
}

func TestWorkGoesOnInThisProcessWhenTheBackendCannotAnswer(t *testing.T) {
	t.Parallel()
	for fate, after := range map[lab.Fate]time.Duration{
		lab.Refused: 0, lab.RequestLost: bound, lab.ReplyLost: bound, lab.ReplyReset: 42 * time.Millisecond,
	} {
		falling(t, func(b *bench) {
			local := b.localOnly()
			b.link.All(fate)
			began := time.Now()
			x := b.acquire(local, "name")
			if took := time.Since(began); took > after {
				b.Errorf("fate %d: took %s, more than %s", fate, took, after)
			}
			b.degraded(x)
			b.ok(x.Err())
			b.is(second(core.FenceFor(x.Context(), "name")), core.ErrUnavailable)
			b.took(0, 0, func() {
				b.taken(local, "name")
				b.taken(b.locks, "name")
			})
			releases := b.link.Calls(lab.OpRelease)
			b.took(0, 0, func() { b.ok(x.Release(b.Context())) })
			if n := b.link.Calls(lab.OpRelease); n > releases+1 { // clean-up of what was asked
				b.Errorf("%d releases sent", n-releases)
			}
			b.is(x.Err(), core.ErrReleased)
			b.degraded(x)
			b.degraded(b.acquire(local, "name"))
		})
	}
}

func TestEventsSayWhetherTheLeaseIsDegraded(t *testing.T) {
	t.Parallel()
	var told []string
	falling(t, func(b *bench) {
		for _, fate := range []lab.Fate{lab.Delivered, lab.Refused} {
			b.link.All(fate)
			b.ok(b.acquire(b.localOnly(), "name").Release(b.Context()))
			synctest.Wait()
		}
		want := []string{"acquired false", "released false", "acquired true", "released true"}
		if !slices.Equal(told, want) {
			b.Errorf("%q", told)
		}
	}, core.WithObserver(func(e core.Event) {
		if what, ok := map[core.EventKind]string{core.EventAcquired: "acquired", core.EventReleased: "released"}[e.Kind]; ok {
			told = append(told, fmt.Sprint(what, " ", e.Degraded))
		}
	}))
}

// late is a context whose end the runtime has not come to, though it is time.
type late struct {
	context.Context
	deadline time.Time
}

func (c late) Deadline() (time.Time, bool) { return c.deadline, true }

func TestACallersDeadlineIsNoProofOfAnOutage(t *testing.T) {
	t.Parallel()
	for _, policy := range []core.UnavailablePolicy{core.FailClosed, core.LocalOnly} {
		synctest.Test(t, func(t *testing.T) {
			b := &bench{T: t, store: memlock.New()}
			locks, err := core.New(fallback.New(b.store), core.OnUnavailable(core.LocalOnly))
			b.ok(err)
			b.store.SetDelay(time.Hour)
			b.is(second(locks.TryAcquire(late{context.Background(), time.Now().Add(time.Second)}, "name", core.OnUnavailable(policy))), core.ErrUnavailable)
			b.store.SetDelay(0)
			x := b.acquire(locks, "other")
			if x.Degraded() {
				t.Error("degraded")
			}
			b.ok(x.Release(t.Context()))
			b.ok(locks.Close(t.Context()))
		})
	}
}

func TestWithoutAPolicyItFailsClosed(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		b.outage(lab.Refused)
		for _, opts := range [][]core.Option{nil, {core.OnUnavailable(core.FailClosed)}, {core.OnUnavailable(core.LocalOnly), core.OnUnavailable(core.FailClosed)}} {
			b.is(second(b.locks.TryAcquire(b.Context(), "name", opts...)), core.ErrUnavailable)
		}
		calls := b.link.Calls(lab.OpAcquire)
		b.is(second(b.locks.Acquire(b.Context(), "name")), core.ErrUnavailable)
		if b.link.Calls(lab.OpAcquire) == calls {
			b.Error("it has not asked")
		}
	})
}

func TestDuringAnOutageNobodyPaysForAnAttempt(t *testing.T) {
	t.Parallel()
	for fate, probes := range map[lab.Fate][2]int{lab.RequestLost: {5, 12}, lab.Refused: {40, 80}} {
		nobodyPays(t, fate, probes[0], probes[1])
	}
}

// nobodyPays has the least and the most of the probes that are sent in 20 s.
func nobodyPays(t *testing.T, fate lab.Fate, least, most int) {
	t.Helper()
	falling(t, func(b *bench) {
		local := b.localOnly()
		b.outage(fate)
		synctest.Wait() // a probe says so, too
		renewals, acquires := b.link.Calls(lab.OpRenew), b.link.Calls(lab.OpAcquire)
		for range 200 { // 20 s
			b.took(0, 0, func() {
				x := b.acquire(local, "name")
				b.degraded(x)
				b.ok(x.Release(b.Context()))
			})
			time.Sleep(100 * time.Millisecond)
		}
		b.sent(acquires, lab.OpAcquire)
		if n := b.link.Calls(lab.OpRenew) - renewals; n < least || n > most {
			b.Errorf("%d probes in 20 s", n)
		}
	})
}

// real fails the test unless local gets a real lease of another name.
func (b *bench) real(local *core.Locker) {
	b.Helper()
	x := b.acquire(local, "another")
	if x.Degraded() {
		b.Error("degraded, though the service answers")
	}
	b.ok(x.Release(b.Context()))
}

func TestTheSilenceOfACallWithLittlePatienceIsNoOutageForOthers(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		local := b.localOnly()
		b.link.Delay(200*time.Millisecond, 200*time.Millisecond)
		b.degraded(b.acquire(local, "name", core.WithTTL(300*time.Millisecond)))
		b.real(local)
	})
}

func TestTheHiccupOfOneCallIsNoOutageForOthers(t *testing.T) {
	t.Parallel()
	for fate, sends := range map[lab.Fate]int{lab.RequestLost: 2, lab.ReplyReset: 4, lab.Refused: 1} {
		falling(t, func(b *bench) {
			local := b.localOnly()
			b.acquire(b.locks, "held", core.WithRenewEvery(900*time.Millisecond)) // its renewals are answered meanwhile
			b.link.Next(lab.OpAcquire, slices.Repeat([]lab.Fate{fate}, sends)...)
			b.degraded(b.acquire(local, "name"))
			b.real(local)
		})
	}
}

func TestAfterTheOutageADegradedLeaseStillExcludesThisProcess(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		local := b.localOnly()
		b.link.All(lab.Refused)
		x := b.acquire(local, "name")
		b.link.Heal()
		time.Sleep(time.Hour) // nothing renews it, and nothing ends it before MaxHold does
		next := make(chan *core.Lease, 2)
		for _, l := range []*core.Locker{local, b.locks} {
			b.taken(l, "name")
			b.is(second(l.Acquire(b.Context(), "name", core.WithWait(time.Second))), core.ErrHeld)
			go func() {
				y, err := l.Acquire(b.Context(), "name")
				b.is(err, nil)
				next <- y
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(next) > 0 {
			b.Fatal("two at once")
		}
		b.ok(x.Release(b.Context()))
		for range 2 { // in any order: LocalOnly has a line of its own
			y := <-next
			if y.Degraded() {
				b.Error("degraded, after the outage")
			}
			b.ok(y.Release(b.Context()))
		}
	}, core.WithMaxHold(0))
}

func TestNobodyGoesLocalBesideWorkThatOutlivesMaxHold(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		local := b.localOnly()
		x := b.acquire(b.locks, "name", core.WithMaxHold(time.Second))
		time.Sleep(time.Second)
		synctest.Wait()
		b.reason(x, core.ReasonMaxHold)
		b.outage(lab.Refused)
		y, err := local.TryAcquire(b.Context(), "name") // the work under x has not returned
		if err == nil {
			b.Errorf("degraded %v beside a lease that has not ended", y.Degraded())
		}
		b.is(err, core.ErrHeld)
		b.is(x.Release(b.Context()), core.ErrLost)
		b.degraded(b.acquire(local, "name"))
	})
}

func TestWhoWasToldThatTheNameIsHeldFailsClosedForATTL(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		local := b.localOnly()
		b.acquire(b.other(), "name")
		granted := make(chan *core.Lease)
		go func() {
			x := b.lease(local.Acquire(b.Context(), "name"))
			granted <- x
		}()
		synctest.Wait()
		told := time.Now()
		b.outage(lab.Refused)
		b.degraded(b.acquire(local, "beside"))
		for range 9 {
			_, err := local.TryAcquire(b.Context(), "name")
			if !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrHeld) {
				b.Errorf("%v", err)
			}
			time.Sleep(ttl / 10)
		}
		b.degraded(<-granted)
		if waited := time.Since(told); waited < ttl || waited > 2*ttl {
			b.Errorf("after %s", waited)
		}
	})
}

func TestAcquireAllIsDegradedIfOneNameIs(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		local := b.localOnly()
		b.link.Next(lab.OpAcquire, lab.Delivered, lab.Refused)
		x := b.set(local.AcquireAll(b.Context(), []string{"b", "a"}))
		if !x.Degraded() || x.Lease("a").Fence() == 0 || x.Lease("b").Fence() != 0 {
			b.Errorf("degraded %v, fences %d and %d", x.Degraded(), x.Lease("a").Fence(), x.Lease("b").Fence())
		}
		b.ok(x.Err())
		b.ok(x.Release(b.Context()))
	})
}

// A grant that comes while a degraded lease has the name is not used, and is gone at the backend.
func TestAGrantThatFindsADegradedLeaseIsGivenBack(t *testing.T) {
	t.Parallel()
	for kind, opt := range map[string]core.Option{"exclusive": core.WithLimit(1), "shared": core.WithShared(), "limited": core.WithLimit(3)} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			falling(t, func(b *bench) {
				local := b.localOnly()
				b.link.Next(lab.OpAcquire, lab.HeldBack)
				granted := make(chan *core.Lease, 1)
				go func() {
					x := b.lease(b.locks.Acquire(b.Context(), "name", opt))
					granted <- x
				}()
				synctest.Wait()
				b.link.All(lab.Refused)
				x := b.acquire(local, "name", core.WithWait(time.Second)) // beside the attempt that is under way
				b.degraded(x)
				b.link.Heal() // and the grant arrives
				synctest.Wait()
				asked := b.link.Calls(lab.OpAcquire)
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(granted) > 0 {
					b.Fatal("two at once")
				}
				b.sent(asked, lab.OpAcquire)
				b.acquireElsewhere("name")
				b.ok(x.Release(b.Context()))
				y := <-granted
				if y.Degraded() {
					b.Error("degraded")
				}
			})
		})
	}
}

// acquireElsewhere fails the test unless another process can have the name now.
func (b *bench) acquireElsewhere(name string) {
	b.Helper()
	b.ok(b.acquire(b.other(), name).Release(b.Context()))
}

// denied is a backend that answers every acquire with the same error.
type denied struct {
	driver.Driver
	err error
}

func (d *denied) Acquire(context.Context, driver.Claim) (driver.Grant, error) {
	return driver.Grant{}, d.err
}

func TestOnlyWhatMeansThatNobodyGetsAnAnswerIsActedOn(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err      error
		degraded bool
	}{
		{driver.ErrCannotAnswer, true},
		{refused, true},
		{errors.Join(driver.ErrNotSent, refused), true},
		{fmt.Errorf("client: %w", io.EOF), true},
		{io.ErrUnexpectedEOF, true},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		{os.NewSyscallError("write", syscall.EPIPE), true},
		{errors.New("WRONGTYPE"), false},
		{errors.Join(driver.ErrNotSent, errors.New("NOPERM")), false},
		{errors.New("unknown reply"), false},
		{context.DeadlineExceeded, false}, // at once: nobody can have waited for it
		{&net.OpError{Op: "read", Err: timeout{}}, false},
		{driver.ErrNotOwner, false},
		{driver.ErrNotSent, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &bench{T: t, store: memlock.New()}
			locks, err := core.New(fallback.New(&denied{b.store, c.err}), core.OnUnavailable(core.LocalOnly))
			b.ok(err)
			x, err := locks.TryAcquire(t.Context(), "name")
			switch {
			case !c.degraded:
				b.is(err, core.ErrUnavailable)
			case err != nil || !x.Degraded():
				t.Errorf("%v: %v", c.err, err)
			default:
				b.ok(x.Release(t.Context()))
			}
			b.ok(locks.Close(t.Context()))
		})
	}
}

type timeout struct{}

func (timeout) Error() string { return "i/o timeout" }
func (timeout) Timeout() bool { return true }

func TestLocalOnlyRefusesWhatOnlyTheServiceKeeps(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		local := core.OnUnavailable(core.LocalOnly)
		for name, opt := range map[string]core.Option{
			"WithDedup": core.WithDedup(time.Hour), "WithMinHold": core.WithMinHold(time.Minute), "WithShared": core.WithShared(),
			"WithLimit": core.WithLimit(2), "OnUnavailable(2)": core.OnUnavailable(2),
		} {
			for _, err := range []error{
				second(core.New(fallback.New(b.link), local, opt)),
				second(b.locks.With(local, opt)),
				second(b.locks.TryAcquire(b.Context(), "try", local, opt)),
				second(b.locks.AcquireAll(b.Context(), []string{"a", "b"}, local, opt)),
				b.locks.Do(b.Context(), "name", func(context.Context) error { panic("ran") }, local, opt),
			} {
				b.says(err, core.ErrInvalid, name)
			}
		}
		if n := b.link.Calls(lab.OpAcquire); n > 0 {
			b.Errorf("%d commands", n)
		}
		b.ok(second(b.locks.With(local, core.WithDedup(time.Hour), core.OnUnavailable(core.FailClosed)))) // the last one wins
	})
}

func TestADegradedLeaseEndsByMaxHoldByCloseAndWithoutRenewal(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		local := b.localOnly()
		b.outage(lab.Refused)
		held := b.acquire(local, "a", core.WithMaxHold(time.Minute))
		timed := b.acquire(local, "b", core.WithoutRenewal())
		rest := b.acquire(local, "c")
		if left := time.Until(timed.ValidUntil()); left != ttl-drift {
			b.Errorf("valid for %s", left)
		}
		if left := time.Until(rest.ValidUntil()); left < 24*time.Hour {
			b.Errorf("valid for %s", left)
		}
		<-timed.Context().Done()
		b.reason(timed, core.ReasonExpired)
		<-held.Context().Done()
		b.reason(held, core.ReasonMaxHold)
		b.is(second(local.TryAcquire(b.Context(), "a")), core.ErrHeld) // its work may still run
		b.is(held.Release(b.Context()), core.ErrLost)
		b.ok(b.acquire(local, "a").Release(b.Context()))
		b.ok(b.acquire(local, "b").Release(b.Context()))

		closed := make(chan error)
		go func() { closed <- b.locks.Close(b.Context()) }()
		<-rest.Context().Done()
		b.is(context.Cause(rest.Context()), core.ErrClosed)
		b.ok(rest.Release(b.Context()))
		b.ok(<-closed)
	})
}

func TestConfirmOfADegradedLeaseIsNil(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		local := b.localOnly()
		b.link.All(lab.Refused)
		x := b.acquire(local, "a")
		b.degraded(x)
		b.link.Heal()
		synctest.Wait()
		calls := b.link.Calls(lab.OpRenew)
		b.ok(core.Confirm(x.Context()))
		synctest.Wait()
		calls = b.link.Calls(lab.OpRenew) - calls
		b.ok(x.Err())

		b.outage(lab.Refused)
		timed := b.acquire(local, "b", core.WithoutRenewal())
		for range 5 {
			time.Sleep(ttl * 6 / 10)
			b.ok(core.Confirm(timed.Context()))
		}
		<-timed.Context().Done()
		b.is(core.Confirm(timed.Context()), core.ErrLost)
		b.ok(x.Release(b.Context()))
		b.is(x.Check(b.Context()), core.ErrReleased)
		if calls > 0 {
			b.Errorf("%d commands", calls)
		}
	})
}

func TestAReentryJoinsADegradedLeaseWhateverItsPolicy(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		b.outage(lab.Refused)
		b.ok(b.localOnly().Do(b.Context(), "name", func(ctx context.Context) error {
			return b.locks.Do(ctx, "name", func(ctx context.Context) error {
				x, _ := core.FromContext(ctx)
				b.degraded(x)
				return core.Confirm(ctx)
			})
		}))
	})
}

func TestCampaignHasNoLeaderWithoutTheBackend(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		local := b.localOnly()
		b.outage(lab.Refused)
		ctx := b.in(time.Minute)
		b.is(local.Campaign(ctx, "name", func(context.Context) error { b.Error("a leader"); return nil }, core.OnUnavailable(core.LocalOnly)), context.DeadlineExceeded)
	})
}
