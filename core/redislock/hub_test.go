package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// A subscription is a hint. Who cannot have one stands in line all the same.
func TestWhoCannotSubscribeIsServedInItsTurn(t *testing.T) {
	t.Parallel()
	for what, deaf := range map[string]func(t *testing.T, addr string) *redis.Client{
		"no permission for channels": func(t *testing.T, addr string) *redis.Client {
			t.Helper()
			ok(t, dial(t, &redis.Options{Addr: addr}).Do(t.Context(), "acl", "setuser", "deaf", "on", ">secret", "~*", "+@all", "resetchannels").Err())
			return dial(t, &redis.Options{Addr: addr, Username: "deaf", Password: "secret"})
		},
		"a proxy that does not know the command": func(t *testing.T, addr string) *redis.Client {
			t.Helper()
			return dial(t, &redis.Options{Addr: addr, Dialer: replace("$9\r\nsubscribe\r\n", "$9\r\nsubskribe\r\n", nil)})
		},
		"a proxy that hangs up": func(t *testing.T, addr string) *redis.Client {
			t.Helper()
			return dial(t, &redis.Options{Addr: addr, Dialer: hangUp(nil)})
		},
		"new connections go nowhere": func(t *testing.T, addr string) *redis.Client {
			t.Helper()
			p := faultproxy.New(t, addr)
			rdb := dial(t, &redis.Options{Addr: p.Addr()})
			ok(t, acquire(t, locker(t, rdb), "before").Release(t.Context()))
			p.BlackHoleNew(true)
			return rdb
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := servers.Redis(t)
			rdb := deaf(t, server.Addr())
			busy := locker(t, dial(t, &redis.Options{Addr: server.Addr()}))
			keepBusy(t, busy, acquire(t, busy, "name"))
			locks := locker(t, rdb)
			for range 3 {
				served(t, locks)
			}
			served(t, locks, core.WithShared())
		})
	}
}

func TestASubscriptionThatFailsIsNotDialledAllTheTime(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	var tries atomic.Int64
	for what, deaf := range map[string]*redis.Client{
		"a proxy that hangs up":                   dial(t, &redis.Options{Addr: server.Addr(), Dialer: hangUp(&tries)}),
		"a server that does not know the command": dial(t, &redis.Options{Addr: server.Addr(), Dialer: replace("subscribe", "subskribe", &tries)}),
	} {
		tries.Store(0)
		locks := locker(t, deaf)
		held := acquire(t, locker(t, dial(t, &redis.Options{Addr: server.Addr()})), "name")
		_, err := locks.Acquire(t.Context(), "name", core.WithWait(2*ttl))
		is(t, err, core.ErrHeld)
		if n := tries.Load(); n < 2 || n > 10 { // 100 ms apart, and further each time
			t.Errorf("%s: tried %d times in %s", what, n, 2*ttl)
		}
		ok(t, held.Release(t.Context()))
	}
}

// Once it is allowed to, a process that waits all the time is told again.
func TestWhoMaySubscribeAgainIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(t, "acl", "setuser", "deaf", "on", ">secret", "~*", "+@all", "resetchannels")
	locks := locker(t, dial(t, &redis.Options{Addr: w.server.Addr(), Username: "deaf", Password: "secret"}))
	x := acquire(t, w.other, "name")
	got := make(chan error, 1)
	go func() {
		y, err := locks.Acquire(t.Context(), "name")
		if err == nil {
			err = y.Release(t.Context())
		}
		got <- err
	}()
	eventually(t, "it stands in line", func() bool { return w.direct.ZCard(t.Context(), lineKey).Val() == 1 })
	if n := len(w.direct.PubSubChannels(t.Context(), "*").Val()); n != 0 {
		t.Errorf("%d channels", n)
	}
	w.do(t, "acl", "setuser", "deaf", "allchannels")
	eventually(t, "it listens", func() bool { return len(w.direct.PubSubChannels(t.Context(), "*").Val()) == 1 })
	ok(t, x.Release(t.Context()))
	ok(t, <-got)
}

// go-redis would dial by itself, besides us, while those who listen believe that they hear.
func TestASubscriptionThatBreaksIsReplacedByOneOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var tries atomic.Int64
	locks := locker(t, dial(t, &redis.Options{Addr: w.server.Addr(), Dialer: replace("subscribe", "subscribe", &tries)}))
	x := acquire(t, w.other, "name")
	got := make(chan error, 1)
	go func() {
		y, err := locks.Acquire(t.Context(), "name")
		if err == nil {
			err = y.Release(t.Context())
		}
		got <- err
	}()
	listens := func() bool { return len(w.direct.PubSubChannels(t.Context(), "*").Val()) == 1 }
	for n := int64(1); n < 4; n++ {
		eventually(t, "it listens", listens)
		if tries.Load() != n {
			t.Errorf("subscribed %d times; it broke %d times", tries.Load(), n-1)
		}
		w.do(t, "client", "kill", "type", "pubsub")
		eventually(t, "it has noticed", func() bool { return tries.Load() > n })
	}
	ok(t, x.Release(t.Context()))
	ok(t, <-got)
}

// The dial goes on in the background, and ends by itself.
func TestCloseHeedsItsContextWhileASubscriptionIsDialled(t *testing.T) {
	t.Parallel()
	for what, stays := range map[string]bool{"somebody waits": true, "the last waiter has left": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ok(t, acquire(t, w.locks, "before").Release(t.Context()))
			x := acquire(t, w.other, "name")
			w.proxy.BlackHoleNew(true)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			waited := make(chan error, 1)
			go func() {
				_, err := w.locks.Acquire(ctx, "name")
				waited <- err
			}()
			eventually(t, "it stands in line", func() bool { return w.direct.ZCard(t.Context(), lineKey).Val() == 1 })
			if !stays {
				leave()
				is(t, <-waited, core.ErrHeld)
			}
			const bound = ttl / 4
			const slack = time.Second // for a busy machine; the dial takes far longer
			ctx, stop := context.WithTimeout(t.Context(), bound)
			defer stop()
			began := time.Now()
			if err := w.locks.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("closed while a subscription is dialled: %v", err)
			}
			if took := time.Since(began); took > bound+slack {
				t.Errorf("took %s", took)
			}
			if stays {
				is(t, <-waited, core.ErrClosed)
			}
			ok(t, w.locks.Close(t.Context())) // once that has ended
			ok(t, x.Release(t.Context()))
		})
	}
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// edited is a connection that changes what is written to it.
type edited struct {
	net.Conn
	edit func([]byte) ([]byte, error)
}

func (c edited) Write(b []byte) (int, error) {
	out, err := c.edit(b)
	if err != nil {
		return 0, errors.Join(err, c.Close())
	}
	if _, err := c.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

func editing(edit func([]byte) ([]byte, error)) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return edited{conn, edit}, err
	}
}

// hangUp ends a connection in place of a subscription, and counts.
func hangUp(tries *atomic.Int64) dialer {
	return editing(func(b []byte) ([]byte, error) {
		if !bytes.Contains(b, []byte("subscribe")) {
			return b, nil
		}
		if tries != nil {
			tries.Add(1)
		}
		return nil, errors.New("hung up")
	})
}

// replace writes one text instead of another, and counts.
func replace(text, other string, times *atomic.Int64) dialer {
	return editing(func(b []byte) ([]byte, error) {
		if times != nil && bytes.Contains(b, []byte(text)) {
			times.Add(1)
		}
		return bytes.ReplaceAll(b, []byte(text), []byte(other)), nil
	})
}
