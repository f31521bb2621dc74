package redislock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

const lineKey, beatsKey = "{holdfast:name}:v1:line", "{holdfast:name}:v1:line:beats"

// look has a claim stand in line for a moment behind whoever holds its name.
func look(t *testing.T, s *redislock.Store, c driver.Claim) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ttl/8)
	defer cancel()
	_, err := s.Wait(ctx, c)
	_ = another(t, err)
}

// store is a backend whose subscription ends with the test.
func store(t *testing.T, rdb redis.UniversalClient) *redislock.Store {
	t.Helper()
	s := redislock.New(rdb)
	t.Cleanup(func() { ok(t, s.Close(context.WithoutCancel(t.Context()))) })
	return s
}

func claim(c string) driver.Claim {
	return driver.Claim{Name: "name", Token: strings.Repeat(c, 22), TTL: time.Minute}
}

// keepBusy has several goroutines of the process that has x take the name again and again, until
// the test ends.
func keepBusy(t *testing.T, locks *core.Locker, x *core.Lease) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				_ = locks.Do(ctx, "name", func(context.Context) error { // until the test ends
					time.Sleep(time.Millisecond)
					return nil
				})
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	time.Sleep(ttl / 20) // they wait for x
	ok(t, x.Release(t.Context()))
}

// served, on any goroutine, fails the test unless the name is granted beside a busy process. How soon depends on
// the machine; who is not served in its turn waits for ever.
func served(t *testing.T, locks *core.Locker, opts ...core.Option) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*ttl)
	defer cancel()
	began := time.Now()
	if err := locks.Do(ctx, "name", func(context.Context) error { return nil }, opts...); err != nil {
		t.Errorf("beside a busy process: %v", err)
	}
	t.Logf("served after %s", time.Since(began))
}

// The line's key goes, by eviction or an operator, while the beats stay.
func TestWhoseLineIsGoneStandsInLineAgain(t *testing.T) {
	t.Parallel()
	for kind, wanted := range map[string]driver.Claim{
		"exclusive": claim("w"),
		"shared":    {Name: "name", Token: strings.Repeat("r", 22), TTL: time.Minute, Limit: driver.Readers},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			holder, waiter := store(t, w.direct), store(t, w.rdb)
			_, err := holder.Acquire(t.Context(), claim("h"))
			ok(t, err)
			look(t, waiter, wanted)
			w.do(t, "del", lineKey)
			look(t, waiter, wanted)
			if n := w.direct.ZCard(t.Context(), lineKey).Val(); n != 1 {
				t.Errorf("%d stand in line", n)
			}
			ok(t, holder.Release(t.Context(), claim("h")))
			_, err = waiter.Wait(t.Context(), wanted)
			ok(t, err)
		})
	}
}

// The beats go, and the line stays: its order is not lost with them.
func TestWhoseBeatsAreGoneKeepsItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	holder, waiter := store(t, w.direct), store(t, w.rdb)
	_, err := holder.Acquire(t.Context(), claim("h"))
	ok(t, err)
	first, second := claim("1"), claim("2")
	look(t, waiter, first)
	look(t, waiter, second)
	w.do(t, "del", beatsKey)
	look(t, waiter, second)
	look(t, waiter, first)
	line := w.direct.ZRange(t.Context(), lineKey, 0, -1).Val()
	if len(line) != 2 || !strings.HasSuffix(line[0], first.Token) {
		t.Errorf("the first is not the first any more, of %d", len(line))
	}
}

func TestAWaiterWhoseLineIsDeletedIsServedBesideABusyProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.other, "name")
	over := make(chan struct{})
	go func() {
		defer close(over)
		served(t, w.locks)
	}()
	eventually(t, "somebody stands in line", func() bool { return w.direct.ZCard(t.Context(), lineKey).Val() == 1 })
	w.do(t, "del", lineKey)
	keepBusy(t, w.other, x)
	<-over
}

// An operator has taken the TTL away. That says nothing about when the name comes free, so it is
// looked at as often as one that a foreign client holds, and not all the time.
func TestANameWithoutATTLIsLookedAtAsAForeignOne(t *testing.T) {
	t.Parallel()
	for kind, opt := range map[string]core.Option{"exclusive": core.WithLimit(1), "shared": core.WithShared(), "limited": core.WithLimit(2)} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, err := store(t, w.direct).Acquire(t.Context(), claim("h"))
			ok(t, err)
			w.do(t, "persist", "holdfast:name")
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() {
				_, err := w.locks.Acquire(ctx, "name", opt)
				over <- err
			}()
			eventually(t, "somebody stands in line", func() bool { return w.direct.ZCard(t.Context(), lineKey).Val() == 1 })
			w.do(t, "config", "resetstat")
			began := time.Now()
			time.Sleep(ttl)
			n, took := scriptCalls(t, w.direct), time.Since(began)
			if most := 20 * took.Seconds(); float64(n) > most {
				t.Errorf("looked at %d times in %s", n, took)
			}
			cancel()
			is(t, <-over, core.ErrHeld)
		})
	}
}

// scriptCalls is how many calls of scripts a server has counted.
func scriptCalls(t *testing.T, rdb *redis.Client) (calls int) {
	t.Helper()
	stats := rdb.Info(t.Context(), "commandstats").Val()
	for _, verb := range []string{"eval", "evalsha"} {
		var n int
		if _, at, ok := strings.Cut(stats, "cmdstat_"+verb+":calls="); ok {
			_, err := fmt.Sscanf(at, "%d", &n)
			if err != nil {
				t.Fatal(err)
			}
		}
		calls += n
	}
	return calls
}
