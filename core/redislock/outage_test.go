package redislock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// localOnly is a Locker whose work goes on without Redis.
func (w *world) localOnly(t *testing.T) *core.Locker {
	t.Helper()
	local, err := lockerOn(t, fallback.New(redislock.New(w.rdb))).With(core.OnUnavailable(core.LocalOnly))
	ok(t, err)
	return local
}

// hammer has eight goroutines hold one name, one at a time, and says how many of their leases were
// degraded, and how long the slowest one took to get its own.
func hammer(t *testing.T, locks *core.Locker) (degraded int64, slowest time.Duration) {
	t.Helper()
	var (
		wg            sync.WaitGroup
		inside, local atomic.Int64
		longest       atomic.Int64
	)
	for range 8 {
		wg.Go(func() {
			began := time.Now()
			err := locks.Do(t.Context(), "hammered", func(ctx context.Context) error {
				longest.Store(max(longest.Load(), int64(time.Since(began)))) // one at a time
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d at once", n)
				}
				defer inside.Add(-1)
				if x, _ := core.FromContext(ctx); x.Degraded() {
					local.Add(1)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return local.Load(), time.Duration(longest.Load())
}

func TestLocalOnlyWorkGoesOnWhileRedisIsGone(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct{ begin, end func(w *world) }{
		"killed":     {func(w *world) { w.server.Kill() }, func(w *world) { w.server.Restart() }},
		"frozen":     {func(w *world) { w.server.Pause() }, func(w *world) { w.server.Resume() }},
		"black hole": {func(w *world) { w.proxy.BlackHole(true) }, func(w *world) { w.proxy.Heal() }},
		"refused":    {func(w *world) { w.proxy.Refuse(true); w.proxy.Reset() }, func(w *world) { w.proxy.Heal() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			local := w.localOnly(t)
			if n, _ := hammer(t, local); n != 0 {
				t.Errorf("%d degraded before the outage", n)
			}
			outage.begin(w)
			for range 3 {
				n, slowest := hammer(t, local)
				if n != 8 {
					t.Errorf("%d of 8 degraded", n)
				}
				if slowest > ttl { // about a third of it, once
					t.Errorf("somebody waited for %s", slowest)
				}
			}
			_, err := w.locks.TryAcquire(t.Context(), "closed")
			is(t, err, core.ErrUnavailable)
			outage.end(w)
			eventually(t, "leases are real again", func() bool { n, _ := hammer(t, local); return n == 0 })
			eventually(t, "nothing is left of what was sent meanwhile", func() bool {
				x, err := w.other.TryAcquire(t.Context(), "hammered")
				return err == nil && x.Release(t.Context()) == nil
			})
		})
	}
}

func TestWhatTheServerRefusesIsNoOutageUnlessItCannotServeAnybody(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		prepare []any
		goesOn  bool
	}{
		"READONLY":               {[]any{"replicaof", "127.0.0.1", "1"}, true},
		"max clients":            {[]any{"config", "set", "maxclients", "1"}, true},
		"WRONGTYPE":              {[]any{"lpush", "holdfast:name", "x"}, false},
		"WRONGTYPE of the fence": {[]any{"lpush", "{holdfast:}:v1:fence", "x"}, false},
		"NOPERM":                 {[]any{"acl", "setuser", "default", "-eval", "-evalsha"}, false},
		"no such key":            {[]any{"acl", "setuser", "default", "resetkeys", "~x"}, false},
		"NOREPLICAS":             {[]any{"config", "set", "min-replicas-to-write", "1"}, false},
		"OOM":                    {[]any{"config", "set", "maxmemory", "1"}, false},
		"held by a client":       {[]any{"set", "holdfast:name", "of another library"}, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.do(t, c.prepare...)
			x, err := w.localOnly(t).TryAcquire(t.Context(), "name")
			switch {
			case !c.goesOn:
				if !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrHeld) {
					t.Errorf("%v", err)
				}
			case err != nil || !x.Degraded():
				t.Errorf("not degraded: %v", err)
			default:
				ok(t, x.Release(t.Context()))
			}
		})
	}
}
