package core_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// logging runs f with a Locker that logs, and returns what it has logged.
func logging(t *testing.T, f func(b *bench), opts ...core.NewOption) string {
	t.Helper()
	var out bytes.Buffer
	virtual(t, func(b *bench) {
		f(b)
		synctest.Wait()
	}, append(opts, core.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))...)
	return out.String()
}

// count fails the test unless each of the texts is there as often as it says.
func count(t *testing.T, text string, wanted map[string]int) {
	t.Helper()
	for want, n := range wanted {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%q %d times, not %d, in\n%s", want, got, n, text)
		}
	}
}

// It changes the default for the process, so it is not parallel.
func TestTheLogIsOnByDefaultAndNilTurnsItOff(t *testing.T) { //nolint:paralleltest // see above
	before := slog.Default()
	defer slog.SetDefault(before)
	for what, opts := range map[string][]core.NewOption{"default": nil, "nil": {core.WithLogger(nil), core.WithObserver(func(core.Event) {})}, "nobody": {core.WithLogger(nil)}} {
		var out bytes.Buffer
		virtual(t, func(b *bench) {
			slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil))) // after New
			b.link.All(lab.Refused)
			b.is(second(b.locks.TryAcquire(b.Context(), "name")), core.ErrUnavailable)
			synctest.Wait()
		}, opts...)
		if logged := strings.Contains(out.String(), "level=WARN msg=\"holdfast: lock service unavailable"); logged != (what == "default") {
			t.Errorf("%s: logged %q", what, &out)
		}
	}
}

func TestNormalOperationIsNoLine(t *testing.T) {
	t.Parallel()
	if text := logging(t, func(b *bench) {
		other := b.other()
		x := b.acquire(b.locks, "name")
		b.taken(other, "name")
		b.taken(b.locks, "name")
		b.is(second(b.locks.Acquire(b.Context(), "name", core.WithWait(time.Second))), core.ErrHeld)
		ctx := b.in(time.Second)
		b.is(second(b.locks.Acquire(ctx, "name")), core.ErrHeld, context.DeadlineExceeded)
		b.ok(b.locks.Do(x.Context(), "name", noWork))
		time.Sleep(time.Minute) // it is renewed
		turn := b.call(b.locks)
		b.ok(x.Release(b.Context()))
		b.ok(turn.granted().Release(b.Context()))
		dedup := []core.Option{core.WithDedup(time.Hour), core.WithShared()}
		b.ok(b.locks.Do(b.Context(), "done", noWork, dedup[0]))
		b.is(b.locks.Do(b.Context(), "done", noWork, dedup[0]), core.ErrDuplicate)
		b.ok(b.locks.Do(b.Context(), "read", noWork, dedup[1]))
		one, two := b.acquire(b.locks, "one"), b.acquire(b.locks, "two")
		b.is(second(b.locks.TryAcquire(b.Context(), "three")), core.ErrUnavailable) // this process is full
		b.ok(errors.Join(one.Release(b.Context()), two.Release(b.Context())))
		b.link.Delay(time.Second, 0)
		b.is(second(b.locks.Acquire(b.in(time.Millisecond), "name")), context.DeadlineExceeded) // and does not await the answer
		b.link.Heal()
		b.ok(b.locks.Drain(b.Context()))
		b.is(second(b.locks.TryAcquire(b.Context(), "name")), core.ErrDraining)
		b.ok(b.locks.Close(b.Context()))
		b.is(second(b.locks.TryAcquire(b.Context(), "name")), core.ErrClosed)
	}, core.WithMaxLeases(2)); text != "" {
		t.Errorf("logged\n%s", text)
	}
}

func TestTheLogSaysLossesWithoutNames(t *testing.T) {
	t.Parallel()
	text := logging(t, func(b *bench) {
		x := b.acquire(b.locks, "secret-name", core.WithLabel("secret-label"), core.WithoutRenewal())
		<-x.Context().Done()
		b.link.All(lab.RequestLost, lab.OpRelease)
		b.ok(b.locks.Do(b.Context(), "secret-too", noWork))
	}, core.WithTemplate("order:{id}"))
	count(t, text, map[string]int{"lease lost": 1, "reason=expired": 1, "release not confirmed": 1, "error_type=unavailable": 1, "template=order:{id}": 2, "secret": 0})
}

// A line keeps others like it away for 10 s. The next one says how many they were.
func TestOfManyLinesThatSayTheSameOneIsWritten(t *testing.T) {
	t.Parallel()
	text := logging(t, func(b *bench) {
		lose := func(template string) {
			x := b.acquire(b.locks, "name", core.WithoutRenewal(), core.WithTTL(time.Second), core.WithTemplate(template))
			<-x.Context().Done()
			time.Sleep(time.Second)
		}
		for range 4 {
			lose("a") // every 2 s
		}
		lose("b")
		for range 2 {
			time.Sleep(10 * time.Second)
			lose("a")
		}
	})
	count(t, text, map[string]int{"lease lost": 4, "template=a": 3, "template=b": 1, "more=3": 1, "more=": 1})
}

func TestALongWaitIsLoggedWithoutNames(t *testing.T) {
	t.Parallel()
	for _, names := range []bool{false, true} {
		var opts []core.NewOption
		n := 0
		if names {
			opts, n = []core.NewOption{core.WithNamesInLogs()}, 1
		}
		text := logging(t, func(b *bench) {
			x := b.acquire(b.other(), "order:1", core.WithLabel("secret"))
			outer := b.acquire(b.locks, "shop:1", core.WithTemplate("shop:{id}"))
			b.ok(b.locks.Do(outer.Context(), "stock:1", func(ctx context.Context) error {
				b.is(b.locks.Do(ctx, "order:1", noWork, core.WithTemplate("order:{id}"), core.WithWait(10*ttl)), core.ErrHeld)
				return nil
			}, core.WithTemplate("stock:{id}")))
			b.ok(outer.Release(b.Context()))
			b.ok(x.Release(b.Context()))
		}, opts...)
		count(t, text, map[string]int{
			"level=WARN msg=\"holdfast: a call has waited for three TTLs;": 1, "template=order:{id}": 1, "waited=30s": 1,
			"holds=\"[shop:{id} stock:{id}]\"": 1, "name=order:1": n, "holder=secret": n, "holds_names=\"[shop:1 stock:1]\"": n,
		})
	}
}

func TestWhatAnObserverPanicsWithIsLoggedOnceAndWithoutItsValue(t *testing.T) {
	t.Parallel()
	text := logging(t, func(b *bench) {
		for range 3 {
			x := b.acquire(b.locks, "secret-name")
			b.taken(b.locks, "secret-name")
			b.ok(x.Release(b.Context()))
		}
	}, observing(observer{
		core.EventAcquired: func(e core.Event) { panic(e.Name) },
		core.EventHeld:     func(e core.Event) { _ = []int{}[len(e.Name)] },
		core.EventReleased: func(core.Event) { runtime.Goexit() },
	}), core.WithWorkContext(func(_ context.Context, e core.Event) context.Context { panic(&e) }))
	count(t, text, map[string]int{
		"level=ERROR msg=\"holdfast: a function of an observer panicked": 3, "with=string": 1, "with=runtime.boundsError": 1, "with=runtime.Goexit": 1,
		"level=ERROR msg=\"holdfast: a function of WithWorkContext panicked": 1, "with=*core.Event": 1,
		"at=github.com/holdfast-go/holdfast/core_test.TestWhatAnObserverPanicsWithIsLoggedOnceAndWithoutItsValue.func": 4,
		"events dropped": 1, "secret": 0,
	})
}

// handler is a log that does something else.
type handler func(line string)

func (handler) Enabled(context.Context, slog.Level) bool        { return true }
func (h handler) Handle(_ context.Context, r slog.Record) error { h(r.Message); return nil }
func (h handler) WithAttrs([]slog.Attr) slog.Handler            { return h }
func (h handler) WithGroup(string) slog.Handler                 { return h }

func TestALogThatFailsStopsNeitherObserverNorService(t *testing.T) {
	t.Parallel()
	for how, fail := range map[string]func(){"panic": func() { panic("log") }, "Goexit": runtime.Goexit} {
		calls, c := 0, &census{calls: make(map[core.EventKind]int)}
		virtual(t, func(b *bench) {
			for range 3 {
				<-b.acquire(b.locks, "name", core.WithoutRenewal()).Context().Done()
				b.store.Lose("name")
				time.Sleep(time.Second)
			}
			synctest.Wait()
			if calls < 3 || c.leases != 0 {
				b.Errorf("%s: %d lines, %d leases by count", how, calls, c.leases)
			}
			b.ok(b.locks.Close(b.Context()))
		}, core.WithObserver(c.observe), core.WithLogger(slog.New(handler(func(string) { calls++; fail() }))))
	}
}

// There is room for so many events, and those of good times need none, also after an outage.
func TestALogThatHangsLeavesNothingOutInGoodTimes(t *testing.T) {
	t.Parallel()
	var said []string
	var free chan struct{}
	virtual(t, func(b *bench) {
		free = make(chan struct{}) // of this bubble
		b.link.Next(lab.OpAcquire, slices.Repeat([]lab.Fate{lab.Refused}, 4)...)
		b.is(second(b.locks.TryAcquire(b.Context(), "name")), core.ErrUnavailable)
		synctest.Wait()
		x := b.acquire(b.locks, "name", core.WithMaxHold(time.Second))
		time.Sleep(time.Second)
		b.is(x.Release(b.Context()), core.ErrLost)
		for range 600 {
			b.ok(b.locks.Do(b.Context(), "name", noWork))
			synctest.Wait() // the observer has time
		}
		x = b.acquire(b.locks, "name")
		time.Sleep(1100 * period)
		b.ok(x.Release(b.Context()))
		close(free)
		synctest.Wait()
		if len(said) != 3 {
			b.Errorf("%q", said)
		}
	}, core.WithObserver(func(core.Event) {}), core.WithLogger(slog.New(handler(func(line string) {
		if said = append(said, line); strings.Contains(line, "lost") {
			<-free
		}
	}))))
}

func TestTheLogSaysThatWorkGoesOnWithoutTheServiceAndWhenThatIsOver(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	falling(t, func(b *bench) {
		comesAndGoes := []lab.Fate{lab.Refused, lab.Refused, lab.Delivered, lab.Delivered} // a probe goes with the third
		for _, fate := range slices.Concat(slices.Repeat(comesAndGoes[:1], 10), comesAndGoes, comesAndGoes) {
			b.link.All(fate)
			b.ok(b.acquire(b.localOnly(), "name").Release(b.Context()))
			time.Sleep(2 * time.Second)
		}
	}, core.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
	count(t, out.String(), map[string]int{"exclusive in this process only": 1, "available again": 1, "level=": 2})
}

func TestAServiceThatComesAndGoesIsTwoLines(t *testing.T) {
	t.Parallel()
	dedup := core.WithDedup(time.Hour)
	for _, answers := range []func(b *bench){ // which are no grants
		func(b *bench) { b.taken(b.locks, "name") },
		func(b *bench) { b.is(second(b.locks.TryAcquire(b.Context(), "done", dedup)), core.ErrDuplicate) },
	} {
		text := logging(t, func(b *bench) {
			b.acquire(b.other(), "name")
			b.ok(b.other().Do(b.Context(), "done", noWork, dedup))
			for range 3 {
				b.link.All(lab.Refused)
				b.is(second(b.locks.TryAcquire(b.Context(), "name")), core.ErrUnavailable)
				synctest.Wait()
				b.link.All(lab.Delivered)
				answers(b)
				time.Sleep(time.Second)
			}
		})
		count(t, text, map[string]int{"lock service unavailable": 1, "available again": 1, "level=": 2})
	}
}

func TestARenewalThatFindsNoServiceIsSaidWithWhatFoundIt(t *testing.T) {
	t.Parallel()
	text := logging(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithTTL(10*time.Second))
		b.acquire(b.other(), "theirs")
		waiter := b.begin(func() error { return second(b.locks.Acquire(b.Context(), "theirs", core.WithWait(4*time.Second))) })
		b.link.All(lab.Refused)
		b.is(<-waiter, core.ErrHeld)                    // no sign of the service: it has said so before
		b.gets(b.locks.TryAcquire(x.Context(), "name")) // nor this: it asks nothing
		time.Sleep(time.Second)
		b.link.All(lab.Delivered)
		time.Sleep(2 * time.Second)
		b.ok(x.Release(b.Context()))
	})
	count(t, text, map[string]int{"lock service unavailable": 1, "during=renew": 1, "available again": 1, "after=2.": 1, "level=": 2})
}
