package etcdlock_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/etcdlock"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func TestWhatCannotWorkIsRefusedByNew(t *testing.T) {
	t.Parallel()
	client := dial(t, "127.0.0.1:1")
	backendtest.RefusedByNew(t, map[string]driver.Driver{
		"nil client":   etcdlock.New(nil),
		"WithPrefix":   etcdlock.New(client, etcdlock.WithPrefix("a\x00")),
		"WithPrefix ":  etcdlock.New(client, etcdlock.WithPrefix("a\n")),
		"WithPrefix  ": etcdlock.New(client, etcdlock.WithPrefix("\u0085")),
	})
	locks, err := core.New(etcdlock.New(client, etcdlock.WithPrefix("")))
	ok(t, err)
	_, err = locks.With(core.WithTTL(time.Second))
	is(t, err, core.ErrInvalid) // shorter than etcd's leases
}

func TestNoTokenIsAtTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := etcdlock.New(w.direct)
	owner := driver.Claim{Name: "name", Token: "secret-1", Label: "web 1", TTL: longTTL}
	waiter := driver.Claim{Name: "name", Token: "secret-2", TTL: longTTL}
	_, err := store.Acquire(t.Context(), owner)
	ok(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	waits(ctx, t, store, waiter)
	answer, err := w.direct.Get(t.Context(), "holdfast/", clientv3.WithPrefix())
	ok(t, err)
	form := regexp.MustCompile(`^holdfast/name(=v1 [0-9a-f]{32} 30000 web 1|\x00queue/[0-9a-f]{32}=)$`)
	for _, kv := range answer.Kvs {
		if pair := string(kv.Key) + "=" + string(kv.Value); !form.MatchString(pair) || strings.Contains(pair, "secret") {
			t.Errorf("%q", pair)
		}
	}
	if len(answer.Kvs) != 2 {
		t.Errorf("%d keys", len(answer.Kvs))
	}
}

func TestARefusedAcquireWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.other, "name")
	revision := func() int64 {
		answer, err := w.direct.Get(t.Context(), "x")
		ok(t, err)
		return answer.Header.Revision
	}
	before := revision()
	eventually(t, "its lease is the only one", func() bool { return w.leases(t) == 1 })
	for range 5 {
		_, err := w.locks.TryAcquire(t.Context(), "name")
		is(t, err, core.ErrHeld)
		if n := w.leases(t); n != 1 {
			t.Errorf("%d leases", n)
		}
	}
	if after := revision(); after != before {
		t.Errorf("revision %d, and %d before", after, before)
	}
	ok(t, x.Release(t.Context()))
}

func TestTheFenceIsTheRevisionOfTheGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name")
	answer, err := w.direct.Get(t.Context(), "holdfast/name")
	ok(t, err)
	if uint64(answer.Kvs[0].CreateRevision) != x.Fence() {
		t.Errorf("fence %d, created at %d", x.Fence(), answer.Kvs[0].CreateRevision)
	}
	ok(t, x.Release(t.Context()))
}

func TestALeaseIsNoShorterThanItsTTL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for asked, granted := range map[time.Duration]int64{2 * time.Second: 2, 2001 * time.Millisecond: 3, time.Hour: 3600} {
		x := acquire(t, w.locks, "name", core.WithTTL(asked))
		lease, err := w.direct.TimeToLive(t.Context(), w.leaseOf(t, "holdfast/name"))
		ok(t, err)
		if lease.GrantedTTL != granted {
			t.Errorf("%d s for %s", lease.GrantedTTL, asked)
		}
		ok(t, x.Release(t.Context()))
	}
}
