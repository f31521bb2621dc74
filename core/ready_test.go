package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestReadySaysWhyNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		locks, err := core.New(store)
		if err != nil {
			t.Fatal(err)
		}
		if err := locks.Ready(t.Context()); err != nil {
			t.Errorf("with a service: %v", err)
		}
		x, err := locks.Acquire(t.Context(), "holdfast.ready")
		if err != nil {
			t.Fatal(err)
		}
		if err := locks.Ready(t.Context()); err != nil {
			t.Errorf("while another one asks: %v", err)
		}
		if err := x.Release(t.Context()); err != nil {
			t.Error(err)
		}
		store.SetDown(true)
		if err := locks.Ready(t.Context()); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "SetDown") {
			t.Errorf("without a service: %v", err)
		}
		store.SetDown(false)
		store.SetDelay(time.Hour)
		began := time.Now()
		if err := locks.Ready(t.Context()); !errors.Is(err, core.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("of a silent service: %v", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("after %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if err := locks.Ready(ctx); !errors.Is(err, core.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a deadline: %v", err)
		}
		store.SetDelay(0)
		if err := locks.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		store.SetDown(true) // it is not asked any more
		if err := locks.Ready(t.Context()); !errors.Is(err, core.ErrDraining) || strings.Contains(err.Error(), "acquire") {
			t.Errorf("while it drains: %v", err)
		}
		store.SetDown(false)
		if err := locks.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := locks.Ready(t.Context()); !errors.Is(err, core.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		var none *core.Locker
		if err := none.Ready(t.Context()); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("of no Locker: %v", err)
		}
	})
}

// refusing is a service that answers every acquire with a refusal of the client.
type refusing struct {
	*memlock.Store
	says string
}

func (r refusing) Acquire(context.Context, driver.Claim) (driver.Grant, error) {
	return driver.Grant{}, driver.NotSent(driver.Refused(driver.Because(errors.New(r.says), "check the password")))
}

func TestAReasonThatTheErrorHasAlreadyIsSaidOnce(t *testing.T) {
	t.Parallel()
	locks, err := core.New(refusing{memlock.New(), "sql: check the password: 28P01"})
	if err != nil {
		t.Fatal(err)
	}
	if err := locks.Ready(t.Context()); err == nil || strings.Count(err.Error(), "check the password") != 1 {
		t.Error(err)
	}
}

func TestAClientThatIsRefusedIsToldAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks, err := core.New(refusing{memlock.New(), "WRONGPASS"})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, acquire := range []func() error{
			func() error { _, err := locks.Acquire(t.Context(), "name"); return err },
			func() error { _, err := locks.TryAcquire(t.Context(), "name"); return err },
			func() error { return locks.Ready(t.Context()) },
		} {
			err := acquire()
			if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "WRONGPASS: check the password") {
				t.Errorf("%v", err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("after %s", took)
		}
	})
}

// moving is a service whose client goes from one server to the next.
type moving struct {
	*memlock.Store

	at string
}

func (m *moving) Capabilities() driver.Capabilities {
	can := m.Store.Capabilities()
	can.Location = m.at
	return can
}

func TestReadySaysWhereTheServiceIsNow(t *testing.T) {
	t.Parallel()
	service := &moving{memlock.New(), "no server yet"}
	locks, err := core.New(service)
	if err != nil {
		t.Fatal(err)
	}
	service.at = "host:1"
	service.SetDown(true)
	if err := locks.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), " at host:1: ") {
		t.Errorf("%v does not say where", err)
	}
}
