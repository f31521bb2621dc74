package core_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

const itself = "it waits for itself"

// logging plays f with a Locker that logs, and returns the log.
func logging(t *testing.T, f func(b *bench), opts ...core.NewOption) string {
	t.Helper()
	var logged bytes.Buffer
	virtual(t, func(b *bench) {
		f(b)
		b.ok(b.locks.Close(b.Context()))
	}, append(opts, core.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))...)
	return logged.String()
}

func TestACallThatWaitsForItsOwnWorkIsLoggedOnceForEachTemplate(t *testing.T) {
	t.Parallel()
	orders, stock := core.WithTemplate("order:{id}"), core.WithTemplate("stock:{id}")
	play := func(b *bench) {
		for range 2 {
			for _, row := range []struct {
				name string
				of   core.Option
			}{{"order:1", orders}, {"order:2", orders}, {"stock:1", stock}} {
				b.ok(b.locks.Do(b.Context(), row.name, func(context.Context) error {
					ctx, cancel := context.WithTimeout(context.Background(), 2*ttl)
					defer cancel()
					b.is(b.locks.Do(ctx, row.name, noWork, row.of), core.ErrHeld)
					return nil
				}, row.of, core.WithLabel("mine")))
			}
		}
	}
	text := logging(t, play)
	if n := strings.Count(text, itself); n != 2 {
		t.Errorf("%d times:\n%s", n, text)
	}
	for part, has := range map[string]bool{"template=order:{id} holder=order:{id} held=": true, "mine": false, "order:1": false} {
		if strings.Contains(text, part) != has {
			t.Errorf("%s: %t\n%s", part, !has, text)
		}
	}
	text = logging(t, play, core.WithNamesInLogs())
	if !strings.Contains(text, "name=order:1") || !strings.Contains(text, "holder_label=mine") {
		t.Error(text)
	}
}

func TestAReaderThatWaitsForItsOwnWriterIsLogged(t *testing.T) {
	t.Parallel()
	text := logging(t, func(b *bench) {
		b.is(b.locks.Do(b.Context(), "name", func(context.Context) error {
			return b.locks.Do(b.Context(), "name", noWork, core.WithShared(), core.WithWait(2*ttl))
		}), core.ErrHeld)
	})
	if !strings.Contains(text, itself) {
		t.Error(text)
	}
}

func TestWhoOnlyWaitsForItsTurnIsNotLogged(t *testing.T) {
	t.Parallel()
	text := logging(t, func(b *bench) {
		work := func(context.Context) error { time.Sleep(ttl / 2); return nil }
		for range 10 { // the last one waits for five TTLs
			b.goes(b.Context(), func(ctx context.Context) (*core.Lease, error) { return nil, b.locks.Do(ctx, "name", work) })
		}
		time.Sleep(10 * ttl)
		// Another process has the name.
		x := b.acquire(b.other(), "name")
		b.is(b.locks.Do(b.Context(), "name", noWork, core.WithWait(2*ttl)), core.ErrHeld)
		b.ok(x.Release(b.Context()))
		// The context has the lease.
		b.ok(b.locks.Do(b.Context(), "name", func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*ttl)
			defer cancel()
			_, err := b.locks.Acquire(ctx, "name", core.WithoutReentry(), core.WithWait(2*ttl))
			b.is(err, core.ErrDeadlock)
			return nil
		}))
	})
	if strings.Contains(text, itself) {
		t.Error(text)
	}
}
