package telemetrytest_test

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// lines runs do with a Locker that logs, and returns what it has logged but for the times.
func lines(t *testing.T, do func(b *bench, locks *core.Locker)) string {
	t.Helper()
	var logged bytes.Buffer
	handler := slog.NewTextHandler(&logged, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	virtual(t, func(b *bench) {
		do(b, b.locker(fallback.New(b.net), core.WithTemplate(template), core.WithLogger(slog.New(handler))))
		synctest.Wait()
	})
	return logged.String()
}

func TestAnOutageIsTwoLinesHoweverManyCallsFail(t *testing.T) {
	t.Parallel()
	for because, fate := range map[string]lab.Fate{
		"it refused the command, or no connection to it could be had":       lab.Refused,
		"it did not answer in time":                                         lab.RequestLost,
		"the connection broke, or the answer was an error or made no sense": lab.ReplyReset,
	} {
		got := lines(t, func(b *bench, locks *core.Locker) {
			b.net.All(fate)
			for range 3 {
				_, err := locks.TryAcquire(b.Context(), "order:42")
				b.is(err, core.ErrUnavailable)
			}
			time.Sleep(ttl) // what a lost reply had granted is gone
			b.net.All(lab.Delivered)
			b.ok(locks.Do(b.Context(), "order:42", func(context.Context) error { return nil }))
		})
		want := []string{
			`level=WARN msg="holdfast: lock service unavailable, new work is refused and leases end unless it answers in time"` +
				` template=order:{id} during=acquire because="` + because + `"`,
			`level=INFO msg="holdfast: lock service available again" after=`,
			"",
		}
		all := strings.Split(got, "\n")
		if len(all) != 3 || all[0] != want[0] || !strings.HasPrefix(all[1], want[1]) || !strings.HasSuffix(all[1], " failures=3") {
			t.Errorf("logged\n%s\nnot\n%s", got, strings.Join(want, "\n"))
		}
	}
}

// A node may find its names held, or its work done, whenever it asks.
func TestARefusalIsASignOfAnAnswerUnlessItComesFromThisProcess(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context) error { return nil }
	dedup := []core.Option{core.WithDedup(time.Hour), core.WithDedupScope("pay")}
	for what, ask := range map[error]func(b *bench, locks *core.Locker) error{
		core.ErrHeld: func(b *bench, locks *core.Locker) error {
			_, err := locks.TryAcquire(b.Context(), "order:42")
			return err
		},
		core.ErrDuplicate: func(b *bench, locks *core.Locker) error { return locks.Do(b.Context(), "order:1", nothing, dedup...) },
	} {
		got := lines(t, func(b *bench, locks *core.Locker) {
			theirs := b.acquire(b.other())
			b.ok(b.other().Do(b.Context(), "order:1", nothing, dedup...))
			mine, err := locks.Acquire(b.Context(), "order:2", core.WithTTL(time.Hour)) // it is not renewed meanwhile
			b.ok(err)
			for range 2 {
				b.net.All(lab.Refused)
				for range 2 {
					_, err := locks.TryAcquire(b.Context(), "order:3")
					b.is(err, core.ErrUnavailable)
					_, err = locks.TryAcquire(b.Context(), mine.Name())
					b.is(err, core.ErrHeld) // this process knows it without asking
				}
				b.net.Heal()
				b.is(ask(b, locks), what)
				time.Sleep(11 * time.Second) // sooner, another outage is no line
			}
			b.ok(mine.Release(b.Context()))
			b.ok(theirs.Release(b.Context()))
		})
		outage := regexp.MustCompile(`^level=WARN msg="holdfast: lock service unavailable.*\nlevel=INFO msg=.* again" after=\S* failures=2\n`)
		first := outage.FindString(got)
		if second := strings.TrimPrefix(got, first); first == "" || outage.FindString(second) != second || second == "" {
			t.Errorf("%v: logged\n%s", what, got)
		}
	}
}

func TestDegradedWorkIsALineOfItsOwnAndNoSignOfAnAnswer(t *testing.T) {
	t.Parallel()
	got := lines(t, func(b *bench, locks *core.Locker) {
		b.net.All(lab.Refused)
		for range 3 {
			b.ok(locks.Do(b.Context(), "order:42", func(context.Context) error { return nil }, core.OnUnavailable(core.LocalOnly)))
			_, err := locks.TryAcquire(b.Context(), "order:42")
			b.is(err, core.ErrUnavailable)
		}
		b.net.Heal()
		b.ok(locks.Do(b.Context(), "order:42", func(context.Context) error { return nil }))
	})
	want := []string{"work with LocalOnly goes on and is exclusive in this process only", "new work is refused", "available again"}
	all := strings.Split(strings.TrimSpace(got), "\n")
	if len(all) != len(want) {
		t.Fatalf("logged\n%s", got)
	}
	for i, line := range all {
		if !strings.Contains(line, want[i]) {
			t.Errorf("%q does not say %q", line, want[i])
		}
	}
	if !strings.HasSuffix(all[2], " failures=6") {
		t.Errorf("%q", all[2])
	}
}

func TestARefusalOrAGoneCallerIsNoLine(t *testing.T) {
	t.Parallel()
	got := lines(t, func(b *bench, locks *core.Locker) {
		x := b.acquire(b.other())
		_, err := locks.Acquire(b.Context(), x.Name(), core.WithWait(time.Second))
		b.is(err, core.ErrHeld)
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err = locks.Acquire(ctx, x.Name())
		b.is(err, context.DeadlineExceeded)
		b.net.Delay(time.Second, 0)
		ctx, leave := context.WithTimeout(b.Context(), time.Millisecond)
		defer leave()
		_, err = locks.Acquire(ctx, "order:43")
		b.is(err, context.DeadlineExceeded)
	})
	if got != "" {
		t.Errorf("logged\n%s", got)
	}
}
