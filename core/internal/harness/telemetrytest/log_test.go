package telemetrytest_test

import (
	"bytes"
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

// A node may find its names held, or its work done, whenever it asks.
func TestARefusalIsASignOfAnAnswerUnlessItComesFromThisProcess(t *testing.T) {
	t.Parallel()
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
		outage := regexp.MustCompile(`^level=WARN msg="holdfast: lock service unavailable, new .*" template=order:{id} during=acquire because="it refused.*\n` +
			`level=INFO msg=.* again" after=\S* failures=2\n`)
		first := outage.FindString(got)
		if second := strings.TrimPrefix(got, first); first == "" || outage.FindString(second) != second || second == "" {
			t.Errorf("%v: logged\n%s", what, got)
		}
	}
}
