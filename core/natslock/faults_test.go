package natslock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/natslock"
)

// longTTL outlives what a test does meanwhile.
const longTTL = 30 * time.Second

// world is a server of its own, a Store behind a proxy, and another with a good connection.
type world struct {
	server *servers.Server
	proxy  *faultproxy.Proxy
	js     jetstream.JetStream
	bucket jetstream.KeyValue
	far    *natslock.Store
	near   *natslock.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{server: servers.NATS(t)}
	w.proxy = faultproxy.New(t, w.server.Addr())
	w.js = dial(t, w.server.Addr())
	w.bucket = w.create(t, natslock.Bucket("locks", 1))
	w.far = natslock.New(dial(t, w.proxy.Addr()), "locks")
	w.near = natslock.New(w.js, "locks")
	return w
}

func (w *world) create(t *testing.T, config jetstream.KeyValueConfig) jetstream.KeyValue {
	t.Helper()
	bucket, err := w.js.CreateKeyValue(t.Context(), config)
	ok(t, err)
	return bucket
}

func claim(name, token string) driver.Claim {
	return driver.Claim{Name: name, Token: token, TTL: longTTL}
}

func grant(t *testing.T, store *natslock.Store, c driver.Claim) driver.Grant {
	t.Helper()
	g, err := store.Acquire(t.Context(), c)
	ok(t, err)
	return g
}

func TestABrokenConnectionEndsACallLongBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, joins, beside := claim("name", "token"), claim("read", "joins"), claim("read", "beside")
	joins.Limit, beside.Limit = driver.Readers, driver.Readers
	grant(t, w.far, c)
	grant(t, w.near, beside)
	for what, call := range map[string]func(context.Context) error{
		"join":    func(ctx context.Context) error { _, err := w.far.Acquire(ctx, joins); return err },
		"acquire": func(ctx context.Context) error { _, err := w.far.Acquire(ctx, c); return err },
		"renew":   func(ctx context.Context) error { return w.far.Renew(ctx, []driver.Claim{c})[0] },
		"release": func(ctx context.Context) error { return w.far.Release(ctx, c) },
		"wait":    func(ctx context.Context) error { _, err := w.far.Wait(ctx, claim("name", "waiter")); return err },
	} {
		eventually(t, "it is connected", func() bool { return w.far.Renew(t.Context(), []driver.Claim{c})[0] == nil })
		w.proxy.BlackHole(true) // the request is on its way, and is not answered
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		result := make(chan error, 1)
		go func() { result <- call(ctx) }()
		eventually(t, "the connection breaks", func() bool {
			w.proxy.Reset()
			return len(result) > 0
		})
		cancel()
		if err := <-result; !driver.Explain(err).Nobody || ctx.Err() == nil {
			t.Errorf("%s: %v", what, err)
		}
		w.proxy.Heal()
	}
}

func TestWhileDisconnectedNothingIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ok(t, w.far.Release(t.Context(), acquired(t, w.far, "warm")))
	w.server.Kill()
	eventually(t, "the client notices", func() bool {
		_, err := w.far.Acquire(t.Context(), claim("name", "token"))
		return errors.Is(err, driver.ErrNotSent) && driver.Explain(err).Nobody
	})
	w.server.Restart()
	eventually(t, "it is connected again", func() bool {
		return errors.Is(w.far.Release(t.Context(), claim("other", "token")), driver.ErrNotOwner)
	})
	if left := keys(t, w.bucket); len(left) > 0 {
		t.Errorf("%q were kept, and sent later", left)
	}
}

func acquired(t *testing.T, store *natslock.Store, name string) driver.Claim {
	t.Helper()
	c := claim(name, "token of "+name)
	grant(t, store, c)
	return c
}
