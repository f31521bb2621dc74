package zklock

import (
	"context"
	"crypto/rand"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// The client keeps what it was asked for until it gives the connection up, and knows no contexts. An outage must not fill the memory.
func TestASilentServerIsNotAskedWithoutEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longSession)
	s, c := w.store, claim("renewed", "token")
	take(t, s, c)
	w.proxy.BlackHole(true)
	const many = 5000
	for what, ask := range map[string]func(ctx context.Context) error{
		"acquires": func(ctx context.Context) error {
			_, err := s.Acquire(ctx, claim("name", rand.Text()))
			return err
		},
		"renewals": func(ctx context.Context) error { return s.Renew(ctx, []driver.Claim{c})[0] },
	} {
		refused := 0
		for range many {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Microsecond)
			if m := driver.Explain(ask(ctx)); m.Kind == driver.NotDone && m.Nobody {
				refused++
			}
			cancel()
		}
		if refused < many/2 {
			t.Errorf("%s: %d of %d were refused", what, refused, many)
		}
	}
	if n := runtime.NumGoroutine(); n > many {
		t.Errorf("%d goroutines", n)
	}
	w.proxy.Heal()
	w.proxy.Reset()
	eventually(t, "it grants", func() bool {
		_, err := s.Acquire(t.Context(), claim("name", "last"))
		return err == nil
	})
}
