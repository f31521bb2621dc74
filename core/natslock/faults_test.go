package natslock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// world is a server of its own, a Store behind a proxy, and another with a good connection.
type world struct {
	server *servers.Server
	proxy  *faultproxy.Proxy
	bucket jetstream.KeyValue
	far    *Store
	near   *Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{server: servers.NATS(t)}
	w.proxy = faultproxy.New(t, w.server.Addr())
	w.far = New(dial(t, w.proxy.Addr()), "locks")
	w.near = New(dial(t, w.server.Addr()), "locks")
	w.bucket = w.create(t, Bucket("locks", 1))
	return w
}

func (w *world) create(t *testing.T, config jetstream.KeyValueConfig) jetstream.KeyValue {
	t.Helper()
	bucket, err := w.near.js.CreateKeyValue(t.Context(), config)
	ok(t, err)
	return bucket
}

func TestABrokenConnectionEndsACallLongBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, joins := minute("name", "token"), reader("read", "joins")
	granted(t, w.far, c)
	granted(t, w.near, reader("read", "beside"))
	for what, call := range map[string]func(context.Context) error{
		"join":    func(ctx context.Context) error { _, err := w.far.Acquire(ctx, joins); return err },
		"acquire": func(ctx context.Context) error { _, err := w.far.Acquire(ctx, c); return err },
		"renew":   func(ctx context.Context) error { return w.far.Renew(ctx, []driver.Claim{c})[0] },
		"release": func(ctx context.Context) error { return w.far.Release(ctx, c) },
		"wait":    func(ctx context.Context) error { _, err := w.far.Wait(ctx, minute("name", "waiter")); return err },
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
	granted(t, w.far, minute("warm", "token"))
	ok(t, w.far.Release(t.Context(), minute("warm", "token")))
	w.server.Kill()
	eventually(t, "the client notices", func() bool {
		_, err := w.far.Acquire(t.Context(), minute("name", "token"))
		return errors.Is(err, driver.ErrNotSent) && driver.Explain(err).Nobody
	})
	w.server.Restart()
	eventually(t, "it is connected again", func() bool {
		return errors.Is(w.far.Release(t.Context(), minute("other", "token")), driver.ErrNotOwner)
	})
	if left := keys(t, w.bucket); len(left) > 0 {
		t.Errorf("%q were kept, and sent later", left)
	}
}
