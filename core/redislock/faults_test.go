package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// world is a server of its own, a client straight to it, and a Locker behind a proxy.
type world struct {
	server *servers.Server
	proxy  *faultproxy.Proxy
	direct *redis.Client
	rdb    *redis.Client
	locks  *core.Locker
	other  *core.Locker // with a good connection
}

func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	w := &world{server: servers.Redis(t, args...)}
	w.proxy = faultproxy.New(t, w.server.Addr())
	w.direct = dial(t, &redis.Options{Addr: w.server.Addr()})
	w.rdb = dial(t, &redis.Options{Addr: w.proxy.Addr()})
	w.locks = locker(t, w.rdb)
	w.other = locker(t, w.direct)
	return w
}

func (w *world) do(t *testing.T, args ...any) {
	t.Helper()
	ok(t, w.direct.Do(t.Context(), args...).Err())
}

// reachable fails the test unless a name can be locked and unlocked again.
func (w *world) recovers(t *testing.T) {
	t.Helper()
	eventually(t, "the lock service is back", func() bool {
		x, err := w.locks.TryAcquire(t.Context(), "recovered")
		return err == nil && x.Release(t.Context()) == nil
	})
}

func TestALostReplyOnTheWireIsNotSomebodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ok(t, acquire(t, w.locks, "warm").Release(t.Context()))
	w.proxy.DropReplies(1)
	x, err := w.locks.TryAcquire(t.Context(), "name")
	ok(t, err)
	ok(t, x.Release(t.Context()))
	ok(t, acquire(t, w.other, "name", core.WithWait(0)).Release(t.Context()))
}

func TestALeaseSurvivesConnectionsThatBreak(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name", core.WithTTL(10*time.Second), core.WithRenewEvery(200*time.Millisecond))
	for range 10 {
		w.proxy.Reset()
		renewed(t, x)
	}
	eventually(t, "it is released", func() bool { return x.Release(t.Context()) == nil })
}

func TestInABlackHoleTheContextEndsBeforeAnotherGetsIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name")
	w.proxy.BlackHole(true)
	y := acquire(t, w.other, "name")
	if x.Context().Err() == nil {
		t.Error("two holders")
	}
	is(t, x.Err(), core.ErrLost)
	if y.Fence() <= x.Fence() {
		t.Errorf("fence %d after %d", y.Fence(), x.Fence())
	}
	w.proxy.Heal()
	is(t, x.Release(t.Context()), core.ErrLost)
	ok(t, y.Release(t.Context()))
	w.recovers(t)
}

// A client with its default options waits five seconds for a reply, whatever ctx says.
func TestEveryCallReturnsInABlackHoleWithADefaultClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name")
	half := acquire(t, w.locks, "half-over", core.WithTTL(2*ttl), core.WithoutRenewal())
	w.proxy.BlackHole(true)
	const bound = ttl / 3
	const slack = time.Second // for a busy machine; the client's own time-out is far beyond
	within := func(what string, d time.Duration, call func() error, want error) {
		t.Helper()
		began := time.Now()
		err := call()
		if !errors.Is(err, want) || errors.Is(err, core.ErrUnavailable) && errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err) // the deadline was not the caller's
		}
		if took := time.Since(began); took > d+slack {
			t.Errorf("%s took %s", what, took)
		}
	}
	background := context.Background() // nothing but the call's own bound can end it
	within("TryAcquire", bound, func() error { _, err := w.locks.TryAcquire(background, "other"); return err }, core.ErrUnavailable)
	within("Release", bound, func() error { return x.Release(background) }, core.ErrUnavailable)
	ctx, cancel := context.WithCancel(background)
	time.AfterFunc(ttl/10, cancel)
	within("TryAcquire with a ctx that is cancelled", ttl/10, func() error { _, err := w.locks.TryAcquire(ctx, "other"); return err }, context.Canceled)
	eventually(t, "less than half of the lease is left, so that Confirm asks", func() bool { return time.Until(half.ValidUntil()) < 2*ttl*2/5 })
	within("Confirm", 2*ttl/5, func() error { return core.Confirm(half.Context()) }, core.ErrLost)
	w.proxy.Heal()
	w.recovers(t)
}

func TestAFrozenServerIsTransientUntilTrustEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name", core.WithTTL(10*time.Second))
	y := acquire(t, w.locks, "short")
	w.server.Pause()
	<-y.Context().Done()
	is(t, y.Err(), core.ErrLost)
	w.server.Resume()
	ok(t, x.Err())
	eventually(t, "a renewal", func() bool { return time.Until(x.ValidUntil()) > 9*time.Second })
	ok(t, x.Release(t.Context()))
	w.recovers(t)
}

func TestAServerThatIsDownIsUnavailableAndComesBackWithoutARestartOfOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ok(t, acquire(t, w.other, "name").Release(t.Context()))
	w.server.Kill()
	_, err := w.other.TryAcquire(t.Context(), "name", core.WithTTL(10*time.Second)) // go-redis dials for half a second
	is(t, err, core.ErrUnavailable)
	if nerr, ok := errors.AsType[*net.OpError](err); !ok || nerr.Op != "dial" {
		t.Errorf("%v does not wrap what the client said", err)
	}
	w.server.Restart()
	w.recovers(t)
	ok(t, acquire(t, w.other, "name").Release(t.Context()))
}

func TestUnderMaxmemoryOnlyNewGrantsFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name")
	y := acquire(t, w.locks, "done", core.WithDedup(time.Hour))
	const patient = 6 * time.Second // a release may take 2 s then, where other tests have the machine
	z := acquire(t, w.locks, "read", core.WithShared(), core.WithTTL(patient))
	k := acquire(t, w.locks, "kept", core.WithMinHold(time.Minute), core.WithTTL(patient))
	w.do(t, "config", "set", "maxmemory-policy", "noeviction")
	w.do(t, "config", "set", "maxmemory", "1")
	_, err := w.locks.TryAcquire(t.Context(), "other")
	is(t, err, core.ErrUnavailable)
	_, err = w.other.TryAcquire(t.Context(), "name")
	is(t, err, core.ErrHeld)
	lasts(t, x)
	ok(t, x.Release(t.Context()))
	ok(t, y.Complete(t.Context()))
	ok(t, z.Err())
	ok(t, z.Release(t.Context()))
	ok(t, k.Release(t.Context()))
	w.do(t, "config", "set", "maxmemory", "0")
	ok(t, acquire(t, w.other, "name", core.WithWait(0)).Release(t.Context()))
	_, err = w.other.TryAcquire(t.Context(), "done", core.WithDedup(time.Hour))
	is(t, err, core.ErrDuplicate)
	ok(t, acquire(t, w.other, "read").Release(t.Context()))
	_, err = w.other.TryAcquire(t.Context(), "kept")
	is(t, err, core.ErrHeld)
}

func TestScriptsThatAreFlushedAreLoadedInTheSameCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond): // without a pause, it takes a whole processor from other tests
				w.direct.ScriptFlush(context.WithoutCancel(t.Context()))
			}
		}
	})
	store := redislock.New(w.direct)
	for i := range 100 {
		x := acquire(t, w.locks, "name", core.WithWait(0))
		ok(t, x.Release(t.Context()))
		c := driver.Claim{Name: "other", Token: fmt.Sprintf("%022d", i), TTL: ttl}
		_, err := store.Acquire(t.Context(), c)
		ok(t, errors.Join(append(store.Renew(t.Context(), []driver.Claim{c}), err, store.Release(t.Context(), c))...))
	}
	close(stop)
	wg.Wait()
}

func TestFlushAllIsALossAndFencesGoOnGrowing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name")
	w.do(t, "flushall")
	<-x.Context().Done()
	is(t, x.Err(), core.ErrLost)
	y := acquire(t, w.other, "name")
	if y.Fence() <= x.Fence() {
		t.Errorf("fence %d after %d", y.Fence(), x.Fence())
	}
	ok(t, y.Release(t.Context()))
}

func TestFencesGrowWhenTheClockOfTheServerStandsBehindThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ahead := time.Now().Add(time.Hour).UnixMicro()
	w.do(t, "set", "{holdfast:}:v1:fence", ahead)
	last := uint64(ahead)
	store := redislock.New(w.direct)
	for i := range 200 { // consecutive fences, 16 digits long; core would ask again, if an answer is late, and get another one
		c := driver.Claim{Name: "name", Token: fmt.Sprintf("%022d", i), TTL: time.Minute}
		g, err := store.Acquire(t.Context(), c)
		ok(t, err)
		if g.Fence != last+1 {
			t.Fatalf("fence %d after %d", g.Fence, last)
		}
		last = g.Fence
		ok(t, store.Release(t.Context(), c))
	}
}

func TestFencesGrowWhenTheCounterIsLostOrStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var last uint64
	for _, value := range []string{"", "5", "1000000000000000", "garbage", "-1", "99999999999999999"} {
		x := acquire(t, w.locks, "name")
		if x.Fence() <= last {
			t.Errorf("fence %d after %d", x.Fence(), last)
		}
		last = x.Fence()
		ok(t, x.Release(t.Context()))
		if value == "" {
			w.do(t, "del", "{holdfast:}:v1:fence")
		} else {
			w.do(t, "set", "{holdfast:}:v1:fence", value)
		}
	}
	// A number that no fence can be is no grant either.
	_, err := w.locks.TryAcquire(t.Context(), "name")
	is(t, err, core.ErrUnavailable)
}

func TestTheServersRefusalsAreUnavailableAndNeverHeld(t *testing.T) {
	t.Parallel()
	for what, prepare := range map[string]func(t *testing.T, w *world){
		"WRONGTYPE":                  func(t *testing.T, w *world) { w.do(t, "lpush", "holdfast:name", "x") },
		"READONLY":                   func(t *testing.T, w *world) { w.do(t, "replicaof", "127.0.0.1", "1") },
		"NOPERM":                     func(t *testing.T, w *world) { w.do(t, "acl", "setuser", "default", "-eval", "-evalsha") },
		"MISCONF":                    func(t *testing.T, w *world) { w.do(t, "config", "set", "min-replicas-to-write", "1") },
		"WRONGTYPE of the fence":     func(t *testing.T, w *world) { w.do(t, "lpush", "{holdfast:}:v1:fence", "x") },
		"no permission for the lock": func(t *testing.T, w *world) { w.do(t, "acl", "setuser", "default", "resetkeys", "~x") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			prepare(t, w)
			eventually(t, "the error says what the server said", func() bool { // a busy machine may leave an attempt without an answer
				_, err := w.locks.TryAcquire(t.Context(), "name")
				is(t, err, core.ErrUnavailable)
				return err != nil && (strings.Contains(err.Error(), strings.Split(what, " ")[0][:2]) || strings.Contains(err.Error(), "NO"))
			})
		})
	}
}

func TestLostNotificationsCostABoundedDelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				w.direct.Do(context.WithoutCancel(t.Context()), "client", "kill", "type", "pubsub")
			}
		}
	})
	for range 4 {
		x := acquire(t, w.other, "name")
		got := make(chan error, 1)
		go func() {
			y, err := w.locks.Acquire(t.Context(), "name")
			if err == nil {
				err = y.Release(t.Context())
			}
			got <- err
		}()
		time.Sleep(ttl / 4)
		began := time.Now()
		ok(t, x.Release(t.Context()))
		ok(t, <-got)
		if took := time.Since(began); took > ttl {
			t.Errorf("handed over after %s", took)
		}
	}
	close(stop)
	wg.Wait()
}

func TestAPoolThatTheApplicationHoldsStarvesNoOtherLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	small := dial(t, &redis.Options{Addr: w.server.Addr(), PoolSize: 2})
	locks := locker(t, small)
	x := acquire(t, locks, "name")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		go small.BLPop(ctx, 30*time.Second, "nothing")
	}
	eventually(t, "the pool is taken", func() bool { return w.direct.Info(t.Context(), "clients").Val() != "" && blocked(t, w) == 2 })
	began := time.Now()
	_, err := locks.TryAcquire(t.Context(), "other")
	is(t, err, core.ErrUnavailable)
	if took := time.Since(began); took > ttl/3+time.Second {
		t.Errorf("took %s", took)
	}
	<-x.Context().Done() // it cannot be renewed, so it is not trusted beyond its time
	is(t, x.Err(), core.ErrLost)
	w.do(t, "rpush", "nothing", "1", "2")
	eventually(t, "the lock service is back", func() bool {
		y, err := locks.TryAcquire(t.Context(), "other")
		return err == nil && y.Release(t.Context()) == nil
	})
}

func blocked(t *testing.T, w *world) int {
	t.Helper()
	return strings.Count(w.direct.ClientList(t.Context()).Val(), "cmd=blpop")
}
