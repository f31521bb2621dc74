package redislock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// dropsPerCall is how many dead places one call of a script may drop: see line.lua.
const dropsPerCall = 100

// dead puts places in front of a queue, whose processes have died.
func dead(t *testing.T, rdb *redis.Client, n int) {
	t.Helper()
	places := make([]redis.Z, 1000)
	for done := 0; done < n; done += len(places) {
		for i := range places {
			places[i] = redis.Z{Score: float64(done + i), Member: fmt.Sprintf("%022d%022d", done+i, done+i)}
		}
		ok(t, rdb.ZAdd(t.Context(), lineKey, places...).Err())
	}
	ok(t, rdb.Expire(t.Context(), lineKey, time.Minute).Err())
}

// calls is how often a command ran, and the scripts, since the statistics were reset.
func calls(t *testing.T, rdb *redis.Client, command string) (n, scripts int) {
	t.Helper()
	stats := rdb.Info(t.Context(), "commandstats").Val()
	if _, at, found := strings.Cut(stats, "cmdstat_"+command+":calls="); found {
		_, err := fmt.Sscanf(at, "%d", &n)
		ok(t, err)
	}
	return n, scriptCalls(t, rdb)
}

// A rack of machines dies, and all of them were waiting for one name. Dropping all their places in one
// call blocks the server for everybody.
func TestNoCallDropsMoreThanAFewDeadPlaces(t *testing.T) {
	t.Parallel()
	const n = 100_000
	for what, act := range map[string]func(t *testing.T, w *world, held driver.Claim){
		"a claim": func(t *testing.T, w *world, _ driver.Claim) { // of a free name
			t.Helper()
			w.do(t, "del", "holdfast:name")
			_, err := store(t, w.direct).Acquire(t.Context(), claim("c"))
			ok(t, err)
			if left := w.direct.ZCard(t.Context(), lineKey).Val(); left > 0 {
				t.Errorf("granted before %d others were looked at", left)
			}
		},
		"a reader": func(t *testing.T, w *world, _ driver.Claim) {
			t.Helper()
			w.do(t, "del", "holdfast:name")
			c := claim("r")
			c.Limit = driver.Readers
			_, err := store(t, w.direct).Acquire(t.Context(), c)
			ok(t, err)
		},
		"a waiter": func(t *testing.T, w *world, _ driver.Claim) {
			t.Helper()
			w.do(t, "del", "holdfast:name")
			_, err := store(t, w.direct).Wait(t.Context(), claim("w"))
			ok(t, err)
		},
		"a release": func(t *testing.T, w *world, held driver.Claim) {
			t.Helper()
			ok(t, store(t, w.direct).Release(t.Context(), held))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			held := claim("h")
			_, err := store(t, w.direct).Acquire(t.Context(), held)
			ok(t, err)
			dead(t, w.direct, n)
			w.do(t, "config", "resetstat")
			act(t, w, held)
			dropped, scripts := calls(t, w.direct, "zrem")
			if dropped == 0 || dropped > (dropsPerCall+1)*scripts { // a claim also leaves its own place
				t.Errorf("%d dropped by %d calls", dropped, scripts)
			}
		})
	}
}

// While it is not known who comes first, a free name is given to nobody: neither to those who ask, nor to those
// who came last.
func TestThePlacesBehindManyDeadOnesAreServedInTheirOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held := claim("h")
	holder := store(t, w.direct)
	_, err := holder.Acquire(t.Context(), held)
	ok(t, err)
	dead(t, w.direct, 20*dropsPerCall)
	served := make(chan string, 3)
	for i, c := range []string{"1", "2", "3"} {
		locks := locker(t, w.direct)
		go func() {
			_ = locks.Do(context.WithoutCancel(t.Context()), "name", func(context.Context) error { // it lasts
				served <- c
				return nil
			})
		}()
		eventually(t, "it stands in line", func() bool {
			return w.direct.ZCard(t.Context(), lineKey).Val() == int64(20*dropsPerCall+i+1)
		})
	}
	ok(t, holder.Release(t.Context(), held))
	for _, want := range []string{"1", "2", "3"} {
		select {
		case got := <-served:
			if got != want {
				t.Errorf("%s was served, and not %s", got, want)
			}
		case <-time.After(5 * ttl):
			t.Fatal("nobody is served")
		}
	}
}
