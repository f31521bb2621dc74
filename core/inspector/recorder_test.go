package inspector_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/internal/olddriver"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestTheObserverBehindARecorderIsToldEverything(t *testing.T) {
	t.Parallel()
	told := make(map[string]int)
	var next core.Observer
	all := reflect.ValueOf(&next).Elem()
	for i := range all.NumField() {
		name, f := all.Type().Field(i).Name, all.Field(i)
		f.Set(reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
			told[name]++
			return args[:f.Type().NumOut()] // the context, if there is one
		}))
	}
	recording := reflect.ValueOf(inspector.NewRecorder().Before(next))
	for i := range recording.NumField() {
		f, name := recording.Field(i), recording.Type().Field(i).Name
		if f.IsNil() {
			t.Errorf("%s is not passed on", name)
			continue
		}
		args := make([]reflect.Value, f.Type().NumIn())
		for j := range args {
			args[j] = reflect.Zero(f.Type().In(j))
		}
		f.Call(args)
		if told[name] != 1 {
			t.Errorf("%s is told %d times", name, told[name])
		}
	}
}

func TestAnObserverThatPanicsDoesNotCountALeaseTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := inspector.NewRecorder()
		locks := newLocker(t, memlock.New(), core.WithObserver(seen.Before(core.Observer{
			Acquired: func(core.AcquiredEvent) { panic("exporter") },
			Released: func(core.ReleasedEvent) { panic("exporter") },
			Waiting:  func(core.WaitingEvent) { panic("exporter") },
			Waited:   func(core.WaitedEvent) { panic("exporter") },
		})))
		x := acquire(t, locks, "order:42")
		if _, err := locks.Acquire(t.Context(), "order:42", core.WithWait(time.Second)); !errors.Is(err, core.ErrHeld) {
			t.Fatal(err)
		}
		for _, held := range []int{1, 0} {
			page := inspector.New(locks, inspector.WithRecorder(seen))
			b := watch(t, page, "")
			if v := b.next(); v.Health.Held != held || v.Health.Waiting != 0 {
				t.Errorf("%+v, not %d", v.Health, held)
			}
			b.leave()
			page.Close()
			_ = x.Release(t.Context())
		}
	})
}

// down is a lock service that does not answer.
type down struct{ *memlock.Store }

func (down) Acquire(context.Context, driver.Claim) (driver.Grant, error) {
	return driver.Grant{}, errors.Join(driver.ErrNotSent, errors.New("gone"))
}

func TestAPageAboutAPrefixTellsOfNoOtherNamesOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := inspector.NewRecorder()
		locks := newLocker(t, down{memlock.New()}, core.WithObserver(seen.Observer()))
		for _, name := range []string{"order:42", "secret"} {
			if _, err := locks.TryAcquire(t.Context(), name); !errors.Is(err, core.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		page := inspector.New(locks, inspector.WithRecorder(seen), inspector.WithPrefix("order:"))
		defer page.Close()
		b := watch(t, page, "")
		defer b.leave()
		if text := <-b.data; strings.Contains(text, "secret") || !strings.Contains(text, `"outages":2`) {
			t.Error(text)
		}
	})
}
