package redislock_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// Between MULTI and EXEC, a Redis 7 whose memory is full refuses every command, DEL and PEXPIRE too. Later versions, and
// Valkey, refuse what needs memory, as markers do: docs/backends/redis.md says so.
func TestWithoutScriptsLeasesEndWithTheirTTLWhereMemoryIsFull(t *testing.T) {
	t.Parallel()
	p, _ := own(t)
	locks := backendtest.Locker(t, redislock.NewTx(dial(t, &redis.Options{Addr: p.addr})), ttl)
	completed := acquire(t, locks, "completed", core.WithDedup(time.Hour))
	released, held := acquire(t, locks, "released"), acquire(t, locks, "held")
	p.do(t, "config", "set", "maxmemory", "1")
	_, refused := p.direct.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Expire(t.Context(), "none", time.Hour).Err() })

	left := int64(2)
	full(t, completed.Complete(t.Context()))
	if err := released.Release(t.Context()); refused != nil {
		full(t, err)
	} else {
		ok(t, err)
		left--
	}
	if n := p.direct.Exists(t.Context(), p.key("completed"), p.key("released")).Val(); n != left {
		t.Errorf("%d of two names are taken, not %d: what the server lets through is not as the documentation says", n, left)
	}
	if refused != nil {
		<-held.Context().Done()
		is(t, held.Err(), core.ErrLost)
	} else {
		lasts(t, held)
	}
	_, err := locks.TryAcquire(t.Context(), "other")
	is(t, err, core.ErrUnavailable)
	p.do(t, "config", "set", "maxmemory", "0")
	if refused == nil {
		ok(t, held.Release(t.Context()))
	}
	for _, name := range []string{"completed", "released", "held"} { // none is done, and all come free
		ok(t, acquire(t, locks, name, core.WithDedup(time.Hour)).Release(t.Context()))
	}
}

// full fails the test unless err says that the server's memory is full.
func full(t *testing.T, err error) {
	t.Helper()
	is(t, err, core.ErrUnavailable)
	const why = "OOM: the server's memory is full (maxmemory), so the transaction was refused, and the lease is as it was: " +
		"without renewals and releases its name comes free when its TTL is over"
	if !redis.IsOOMError(err) || driver.Reason(err) != why {
		t.Errorf("%v: %s", err, driver.Reason(err))
	}
}

// Who is between its look and its transaction while another one is granted the name and gives it back must not be granted
// the same fence. And whoever is granted the name meanwhile keeps it, also a client that mints no fence.
func TestWithoutScriptsAGrantBetweenLookAndTransactionIsSeen(t *testing.T) {
	t.Parallel()
	p := part(t)
	ahead := time.Now().Add(time.Hour).UnixMicro()
	p.do(t, "set", p.side("counted", "fence"), ahead)
	for name, key := range map[string]string{"counted": p.side("counted", "fence"), "taken": p.key("taken")} {
		var once sync.Once
		rdb := dial(t, &redis.Options{Addr: p.addr, Dialer: editing(func(b []byte) ([]byte, error) {
			if bytes.Contains(b, []byte("multi")) {
				once.Do(func() { p.do(t, "set", key, ahead+1) })
			}
			return b, nil
		})})
		g, err := redislock.NewTx(rdb, redislock.WithPrefix(p.prefix)).Acquire(t.Context(), claim(name, "mine"))
		if name == "taken" {
			_ = another(t, err)
			if value := p.value(t, "taken"); value != fmt.Sprint(ahead+1) {
				t.Errorf("the lock of another was overwritten: %q", value)
			}
			continue
		}
		ok(t, err)
		if g.Fence != uint64(ahead+2) {
			t.Errorf("fence %d, not %d", g.Fence, ahead+2)
		}
	}
}

// All clients of a prefix should be of one kind. If they are not, fences may fall, but a name still has one owner.
func TestScriptsAndTransactionsExcludeEachOther(t *testing.T) {
	t.Parallel()
	p := part(t)
	var owners, granted atomic.Int64
	stores := []driver.Driver{p.store(t), redislock.NewTx(p.direct, redislock.WithPrefix(p.prefix)), p.store(t), redislock.NewTx(p.direct, redislock.WithPrefix(p.prefix))}
	crowd(len(stores), func(i int) {
		for n := range 200 {
			c := claim("name", fmt.Sprint(i, "-", n))
			if _, err := stores[i].Acquire(t.Context(), c); err != nil {
				continue
			}
			granted.Add(1)
			if n := owners.Add(1); n != 1 {
				t.Errorf("%d owners", n)
			}
			check(t, errors.Join(stores[i].Renew(t.Context(), []driver.Claim{c})...))
			owners.Add(-1)
			check(t, stores[i].Release(t.Context(), c))
		}
	})
	if granted.Load() < 100 {
		t.Errorf("%d grants", granted.Load())
	}
}
