package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// follow starts a replica and waits until it is in step.
func follow(t *testing.T, master *servers.Server) *servers.Server {
	t.Helper()
	replica := servers.Redis(t, "--replicaof", strings.Replace(master.Addr(), ":", " ", 1))
	rdb := dial(t, &redis.Options{Addr: master.Addr()})
	eventually(t, "the replica follows", func() bool {
		return strings.Contains(rdb.Info(t.Context(), "replication").Val(), "state=online")
	})
	return replica
}

// ackBound is how long replicas may take: less than an attempt, but long for a busy machine.
const ackBound = ttl / 8

func TestAGrantCountsOnlyOnceReplicasHaveIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--repl-diskless-sync-delay", "0")
	replica := follow(t, w.server)
	locks := locker(t, w.direct, redislock.WithReplicas(1, ackBound))
	x := acquire(t, locks, "name")
	if n := dial(t, &redis.Options{Addr: replica.Addr()}).Exists(t.Context(), "holdfast:name").Val(); n != 1 {
		t.Error("the replica has not heard of it")
	}
	lasts(t, x)
	replica.Pause()
	_, err := locks.TryAcquire(t.Context(), "other")
	is(t, err, core.ErrUnavailable)
	store := redislock.New(w.direct, redislock.WithReplicas(1, ackBound))
	_, err = store.Acquire(t.Context(), driver.Claim{Name: "mine", Token: strings.Repeat("x", 22), TTL: ttl})
	if err == nil || !strings.Contains(err.Error(), "0 of 1 replicas") || errors.Is(err, driver.ErrNotSent) {
		t.Errorf("%v does not say why, or that it is known not to be granted", err)
	}
	_, err = locks.TryAcquire(t.Context(), "name")
	is(t, err, core.ErrHeld)
	y, err := w.other.Acquire(t.Context(), "other") // what was granted is given back
	ok(t, err)
	ok(t, y.Release(t.Context()))
	<-x.Context().Done() // no renewal counts
	is(t, x.Err(), core.ErrLost)
	replica.Resume()
	eventually(t, "grants count again", func() bool {
		x, err := locks.TryAcquire(t.Context(), "name")
		return err == nil && x.Release(t.Context()) == nil
	})
}

func TestASharedGrantCountsOnlyOnceReplicasHaveIt(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]core.Option{"readers": core.WithShared(), "places": core.WithLimit(2)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "--repl-diskless-sync-delay", "0")
			replica := follow(t, w.server)
			locks := locker(t, w.direct, redislock.WithReplicas(1, ackBound))
			x, err := locks.Acquire(t.Context(), name, kind) // which waits until the replica has its stream
			ok(t, err)
			if n := dial(t, &redis.Options{Addr: replica.Addr()}).Exists(t.Context(), "holdfast:"+name).Val(); n != 1 {
				t.Error("the replica has not heard of it")
			}
			lasts(t, x)
			replica.Pause()
			_, err = locks.TryAcquire(t.Context(), "other", kind)
			is(t, err, core.ErrUnavailable)
			_, err = locks.TryAcquire(t.Context(), name)
			is(t, err, core.ErrHeld)
			<-x.Context().Done() // no renewal counts
			is(t, x.Err(), core.ErrLost)
			replica.Resume()
		})
	}
}

func TestReplicasAreWaitedForOnceForAllWhoShareARoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--repl-diskless-sync-delay", "0")
	replica := follow(t, w.server)
	locks := locker(t, w.direct, redislock.WithReplicas(1, ackBound))
	reader := dial(t, &redis.Options{Addr: replica.Addr()})
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			for j := range 10 {
				name := fmt.Sprintf("name-%d-%d", i, j)
				err := locks.Do(t.Context(), name, func(ctx context.Context) error {
					if reader.Exists(ctx, "holdfast:"+name).Val() != 1 {
						t.Errorf("the replica has not heard of %s", name)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestReplicasThatCannotBeAreRefusedByNew(t *testing.T) {
	t.Parallel()
	rdb := dial(t, &redis.Options{Addr: "127.0.0.1:1"})
	for _, o := range []redislock.Option{
		redislock.WithReplicas(-1, time.Second), redislock.WithReplicas(1, 0), redislock.WithReplicas(1, time.Microsecond),
		redislock.WithReplicas(1, -time.Second),
	} {
		_, err := core.New(redislock.New(rdb, o))
		is(t, err, core.ErrInvalid)
	}
	_, err := core.New(redislock.New(rdb, redislock.WithReplicas(0, 0)))
	ok(t, err)
}
