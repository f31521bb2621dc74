package etcdlock

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func TestWhatCannotWorkIsRefusedByNew(t *testing.T) {
	t.Parallel()
	client := dial(t, "127.0.0.1:1")
	backendtest.RefusedByNew(t, map[string]driver.Driver{
		"nil client":   New(nil),
		"WithPrefix":   New(client, WithPrefix("a\x00")),
		"WithPrefix  ": New(client, WithPrefix("\u0085")),
	})
	locks, err := core.New(New(client, WithPrefix("")))
	ok(t, err)
	_, err = locks.With(core.WithTTL(time.Second))
	is(t, err, core.ErrInvalid) // shorter than etcd's leases
}

func TestNoTokenIsAtTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, err := w.store.Acquire(t.Context(), driver.Claim{Name: "name", Token: "secret-1", Label: "web 1", TTL: 29001 * time.Millisecond})
	ok(t, err)
	ok(t, queue(t, w.store, driver.Claim{Name: "name", Token: "secret-2", TTL: longTTL}))
	answer, err := w.direct.Get(t.Context(), "holdfast/", clientv3.WithPrefix())
	ok(t, err)
	form := regexp.MustCompile(`^holdfast/name(=v1 [0-9a-f]{32} 29001 web 1|\x00queue/[0-9a-f]{32}=)$`)
	for _, kv := range answer.Kvs {
		if pair := string(kv.Key) + "=" + string(kv.Value); !form.MatchString(pair) || strings.Contains(pair, "secret") {
			t.Errorf("%q", pair)
		}
	}
	if len(answer.Kvs) != 2 || uint64(answer.Kvs[0].CreateRevision) != g.Fence {
		t.Errorf("%d keys, and fence %d is not the revision of the grant", len(answer.Kvs), g.Fence)
	}
	lease, err := w.direct.TimeToLive(t.Context(), clientv3.LeaseID(answer.Kvs[0].Lease))
	if err != nil || lease.GrantedTTL != 30 {
		t.Errorf("%+v, %v, not in whole seconds, rounded up", lease, err)
	}
}

func TestARefusedAcquireWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	take(t, w.store, driver.Claim{Name: "name", Token: "owner", TTL: longTTL})
	stands := func() string {
		answer, err := w.direct.Leases(t.Context())
		ok(t, err)
		return fmt.Sprintf("revision %d, leases %v", answer.Revision, answer.Leases)
	}
	before := stands()
	for range 5 {
		_, err := w.store.Acquire(t.Context(), driver.Claim{Name: "name", Token: "other", TTL: longTTL})
		backendtest.IsHeld(t, err)
	}
	if after := stands(); after != before {
		t.Errorf("%s, and before %s", after, before)
	}
}

func TestAWaiterNoticesThatItsEntryIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entry := func() (lease clientv3.LeaseID) {
		eventually(t, "there is an entry", func() bool {
			answer, err := w.direct.Get(t.Context(), "holdfast/name\x00queue/", clientv3.WithPrefix())
			ok(t, err)
			for _, kv := range answer.Kvs {
				lease = clientv3.LeaseID(kv.Lease)
			}
			return len(answer.Kvs) > 0
		})
		return lease
	}
	x := acquire(t, locker(t, w.store), "name")
	got := backendtest.Next(t, locker(t, New(w.direct)), "name")
	first := entry()
	_, err := w.direct.Revoke(t.Context(), first)
	ok(t, err)
	if entry() == first {
		t.Error("the same entry")
	}
	ok(t, x.Release(t.Context()))
	ok(t, <-got)
}
