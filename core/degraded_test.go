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
			var x *core.Lease
			b.took(0, after, func() { x = b.acquire(local, "name") })
			b.degraded(x)
			b.ok(x.Err())
			b.is(second(core.FenceFor(x.Context(), "name")), core.ErrUnavailable)
			b.is(second(x.Detach(b.Context(), keep)), core.ErrUnavailable)
			b.ok(x.Err()) // it stands
			releases := b.link.Calls(lab.OpRelease)
			b.took(0, 0, func() {
				b.taken(local, "name")
				b.taken(b.locks, "name")
				b.ok(x.Release(b.Context()))
			})
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
			x := b.acquire(b.localOnly(), "name")
			b.gets(b.locks.TryAcquire(x.Context(), "name")) // no outage of its own
			b.ok(x.Release(b.Context()))
			synctest.Wait()
		}
		want := []string{"acquired false", "acquired false", "released false", "degraded false", "acquired true", "acquired true", "released true"}
		if !slices.Equal(told, want) {
			b.Errorf("%q", told)
		}
	}, core.WithObserver(func(e core.Event) {
		told = append(told, fmt.Sprint(e.Kind, " ", e.Degraded))
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
		virtual(t, func(b *bench) {
			locks := b.locker(fallback.New(b.store), core.OnUnavailable(core.LocalOnly))
			b.store.SetDelay(time.Hour)
			soon := late{context.Background(), time.Now().Add(time.Second)}
			b.is(second(locks.TryAcquire(soon, "name", core.OnUnavailable(policy))), core.ErrUnavailable)
			b.store.SetDelay(0)
			b.real(locks)
		})
	}
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

func TestNobodyGoesLocalBesideWorkThatOutlivesMaxHold(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithMaxHold(time.Second))
		<-x.Context().Done()
		b.reason(x, core.ReasonMaxHold)
		b.outage(lab.Refused)
		b.taken(b.localOnly(), "name") // the work under x has not returned
		b.is(x.Release(b.Context()), core.ErrLost)
		b.degraded(b.acquire(b.localOnly(), "name"))
	})
}

func TestAcquireAllIsDegradedIfOneNameIs(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		b.link.Next(lab.OpAcquire, lab.Delivered, lab.Refused)
		x := b.set(b.localOnly().AcquireAll(b.Context(), []string{"b", "a"}))
		if !x.Degraded() || x.Lease("a").Fence() == 0 || x.Lease("b").Fence() != 0 {
			b.Errorf("degraded %v, fences %d and %d", x.Degraded(), x.Lease("a").Fence(), x.Lease("b").Fence())
		}
		b.ok(x.Release(b.Context()))
	})
}

// A grant that comes while a degraded lease has the name is not used, and is gone at the backend.
func TestAGrantThatFindsADegradedLeaseIsGivenBack(t *testing.T) {
	t.Parallel()
	for kind, opt := range map[string]core.Option{"exclusive": core.WithLimit(1), "shared": core.WithShared(), "limited": core.WithLimit(3)} {
		falling(t, func(b *bench) {
			b.link.Next(lab.OpAcquire, lab.HeldBack)
			next := b.call(b.locks, opt)
			b.link.All(lab.Refused)
			x := b.acquire(b.localOnly(), "name", core.WithWait(time.Second)) // beside the attempt that is under way
			b.degraded(x)
			b.link.Heal() // and the grant arrives
			synctest.Wait()
			asked := b.link.Calls(lab.OpAcquire)
			time.Sleep(time.Minute)
			if next.ended() {
				b.Fatalf("%s: two at once", kind)
			}
			b.sent(asked, lab.OpAcquire) // not for what it could not use
			b.free()
			b.ok(x.Release(b.Context()))
			<-next.over
			if next.granted().Degraded() {
				b.Error("degraded")
			}
		})
	}
}

func TestOnlyWhatMeansThatNobodyGetsAnAnswerIsActedOn(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for degraded, errs := range map[bool][]error{
		true: {
			driver.ErrCannotAnswer, refused, errors.Join(driver.ErrNotSent, refused), fmt.Errorf("client: %w", io.EOF), io.ErrUnexpectedEOF,
			&net.OpError{Op: "read", Err: syscall.ECONNRESET}, os.NewSyscallError("write", syscall.EPIPE),
		},
		false: {
			errors.New("WRONGTYPE"), errors.Join(driver.ErrNotSent, errors.New("NOPERM")), errors.New("unknown reply"),
			context.DeadlineExceeded, // at once: nobody can have waited for it
			&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, driver.ErrNotOwner, driver.ErrNotSent,
		},
	} {
		for _, denied := range errs {
			virtual(t, func(b *bench) {
				locks := b.locker(fallback.New(&hooked{Driver: b.store, acquire: func(context.Context, driver.Claim) (driver.Grant, error) {
					return driver.Grant{}, denied
				}}), core.OnUnavailable(core.LocalOnly))
				x, err := locks.TryAcquire(b.Context(), "name")
				if !degraded {
					b.is(err, core.ErrUnavailable)
				} else if err != nil || !x.Degraded() {
					b.Errorf("%v: %v", denied, err)
				}
			})
		}
	}
}

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
		set := b.set(local.AcquireAll(b.Context(), []string{"d", "e"}, core.WithoutRenewal()))
		rest := b.acquire(local, "c")
		b.validFor(timed, time.Now(), ttl-drift)
		if left := time.Until(rest.ValidUntil()); left < 24*time.Hour {
			b.Errorf("valid for %s", left)
		}
		<-timed.Context().Done()
		b.reason(timed, core.ReasonExpired)
		<-set.Context().Done()
		b.is(set.Release(b.Context()), core.ErrLost)
		<-held.Context().Done()
		b.reason(held, core.ReasonMaxHold)
		b.taken(local, "a") // its work may still run
		b.is(held.Release(b.Context()), core.ErrLost)
		b.ok(b.acquire(local, "a").Release(b.Context()))
		b.ok(b.acquire(local, "b").Release(b.Context()))

		closed := b.begin(func() error { return b.locks.Close(b.Context()) })
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
		b.ok(core.Confirm(x.Context()))
		timed := b.acquire(local, "b", core.WithoutRenewal())
		for range 5 {
			time.Sleep(ttl * 6 / 10)
			b.ok(core.Confirm(timed.Context()))
		}
		<-timed.Context().Done()
		b.is(core.Confirm(timed.Context()), core.ErrLost)
		b.ok(x.Release(b.Context()))
	})
}

func TestCampaignHasNoLeaderWithoutTheBackend(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		b.outage(lab.Refused)
		leads := func(context.Context) error { b.Error("a leader"); return nil }
		b.took(time.Minute, 0, func() { // which may end in the pause between two attempts
			b.is(b.localOnly().Campaign(b.in(time.Minute), "name", leads, core.OnUnavailable(core.LocalOnly)), context.DeadlineExceeded)
		})
	})
}

// stale is a hand-off of "name" that somebody has come with already.
func (b *bench) stale() core.Handoff {
	b.Helper()
	there := b.other()
	handoff := b.detach(b.acquire(there, "name"))
	b.gets(there.Attach(b.Context(), handoff))
	return handoff
}

// A call with a hand-off asks beside the line of its name. In an outage it must not take the
// name from whoever of this process has it, nor undo the line in which others wait.
func TestAStaleHandoffGoesLocalBesideNobody(t *testing.T) {
	t.Parallel()
	for _, fate := range []lab.Fate{lab.Refused, lab.RequestLost} {
		for _, wait := range []bool{true, false} {
			falling(t, func(b *bench) {
				local, handoff := b.localOnly(), b.stale()
				x := b.acquire(b.locks, "name")
				waiting := b.call(b.locks)
				b.link.All(fate)
				if !wait {
					b.is(second(local.Attach(b.Context(), handoff, core.WithWait(0))), core.ErrHeld)
				}
				came := b.coming(local, handoff)
				b.eventually("its attempt is over", func() bool { return b.link.Calls(lab.OpAcquire) > 0 })
				b.ok(x.Err())
				if came.ended() {
					b.Fatalf("two leases at once: %v, %v", came.lease, came.err)
				}
				b.link.All(lab.Delivered)
				b.ok(x.Release(b.Context()))
				first, then := waiting, came // places in the queue die in the outage, so whoever asks first
				b.eventually("one of them is served", func() bool {
					if came.ended() {
						first, then = came, waiting
					}
					return first.ended()
				})
				if then.ended() {
					b.Fatal("two leases at once")
				}
				b.ok(first.granted().Release(b.Context()))
				b.eventually("and then the other one", then.ended)
				b.ok(then.granted().Release(b.Context()))
				b.free()
			})
		}
	}
}
