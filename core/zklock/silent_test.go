package zklock_test

import (
	"context"
	"crypto/rand"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/zklock"
)

// The client keeps what it was asked for until it gives the connection up, and knows no contexts. An outage must not fill the memory.
func TestASilentServerIsNotAskedWithoutEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longSession)
	conn, session := connect(t, w.proxy.Addr(), longSession)
	s := zklock.New(conn, session)
	c := driver.Claim{Name: "renewed", Token: "token", TTL: ttl}
	_, err := s.Acquire(t.Context(), c)
	ok(t, err)
	w.proxy.BlackHole(true)
	const many = 5000
	for what, ask := range map[string]func(ctx context.Context) error{
		"acquires": func(ctx context.Context) error {
			_, err := s.Acquire(ctx, driver.Claim{Name: "name", Token: rand.Text(), TTL: ttl})
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
		_, err = s.Acquire(t.Context(), driver.Claim{Name: "name", Token: "last", TTL: ttl})
		return err == nil
	})
}
