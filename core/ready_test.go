package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func TestReadySaysWhyNot(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		locks := b.locker(b.store)
		b.ok(locks.Ready(b.Context()))
		x := b.acquire(locks, "holdfast.ready")
		b.ok(locks.Ready(b.Context())) // while another one asks
		b.ok(x.Release(b.Context()))
		time.Sleep(time.Second)
		if left := locks.Remains(); len(left) > 0 {
			b.Errorf("it leaves %v", left)
		}
		b.store.SetDown(true)
		for _, err := range []error{locks.Ready(b.Context()), second(locks.TryAcquire(b.Context(), "name"))} {
			b.says(err, core.ErrUnavailable, "lock service unavailable: memlock: ") // which has no address
		}
		if err := locks.Ready(b.Context()); !strings.HasPrefix(err.Error(), "holdfast: ready: ") || strings.HasSuffix(err.Error(), ")") {
			b.Errorf("%v: of a name, or of a context that has ended", err)
		}
		b.store.SetDown(false)
		b.store.SetDelay(time.Hour)
		b.took(bound, 0, func() {
			err := locks.Ready(b.Context())
			b.is(err, core.ErrUnavailable)
			b.isNot(err, context.DeadlineExceeded)
		})
		b.is(locks.Ready(b.in(time.Second/2)), core.ErrUnavailable, context.DeadlineExceeded)
		b.store.SetDelay(0)
		b.ok(locks.Drain(b.Context()))
		b.store.SetDown(true) // it is not asked any more
		if err := locks.Ready(b.Context()); !errors.Is(err, core.ErrDraining) || strings.Contains(err.Error(), "acquire") {
			b.Errorf("while it drains: %v", err)
		}
		b.ok(locks.Close(b.Context()))
		b.is(locks.Ready(b.Context()), core.ErrClosed)
	})
}

// A probe whose answers are lost leaves nothing that other processes' probes have to wait for.
func TestReadyCleansUpBehindItself(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ended, cancel := context.WithCancel(b.Context())
		cancel()
		b.says(b.locks.Ready(ended), context.Canceled, "the context ended before the lock service answered")
		b.sent(0)
		b.link.All(lab.ReplyLost, lab.OpAcquire)
		b.is(b.locks.Ready(b.Context()), core.ErrUnavailable)
		time.Sleep(time.Second) // a tenth of the TTL for which the name would stay taken
		b.ok(b.lease(b.other().TryAcquire(b.Context(), "holdfast.ready")).Release(b.Context()))
		for _, fate := range []lab.Fate{lab.RequestLost, lab.Refused} {
			b.link.All(fate, lab.OpRelease)
			b.is(b.locks.Ready(b.Context()), core.ErrUnavailable)
			b.link.Heal()
			time.Sleep(time.Second)
			b.ok(b.lease(b.other().TryAcquire(b.Context(), "holdfast.ready")).Release(b.Context()))
		}
		taken := &hooked{Driver: b.store, release: func(context.Context, driver.Claim) error { return driver.ErrNotOwner }}
		b.ok(b.locker(taken).Ready(b.Context())) // by an operator, meanwhile: it has answered
	})
}

// says fails the test unless err is of a kind, and has the text.
func (b *bench) says(err, kind error, text string) {
	b.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		b.Errorf("%v does not say %q", err, text)
	}
}

func TestAClientThatIsRefusedIsToldAtOnceAndOnce(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]string{ //nolint:gosec // G101: what servers say of a password
		"WRONGPASS": "WRONGPASS: check the password", "sql: check the password: 28P01": "sql: check the password: 28P01",
	} {
		virtual(t, func(b *bench) {
			locks := b.locker(&hooked{Driver: b.store, acquire: func(context.Context, driver.Claim) (driver.Grant, error) {
				return driver.Grant{}, driver.NotSent(driver.Refused(driver.Because(errors.New(says), "check the password")))
			}})
			b.took(0, 0, func() {
				for _, err := range []error{
					second(locks.Acquire(b.Context(), "name")), second(locks.TryAcquire(b.Context(), "name")), locks.Ready(b.Context()),
				} {
					if b.says(err, core.ErrUnavailable, want); strings.Count(err.Error(), "check the password") != 1 {
						b.Errorf("%v says it twice", err)
					}
				}
			})
		})
	}
}

func TestReadySaysWhereTheServiceIsNow(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		at := "no server yet" // its client goes from one server to the next
		locks := b.locker(&hooked{Driver: b.store, can: func(can *driver.Capabilities) { can.Location = at }})
		at = "host:1"
		b.store.SetDown(true)
		b.says(locks.Ready(b.Context()), core.ErrUnavailable, " at host:1: ")
	})
}
