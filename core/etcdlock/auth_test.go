package etcdlock_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/etcdlock"
)

// secure turns passwords on, with a user who may do what docs/backends/etcd.md lists and no more.
func secure(t *testing.T, root *clientv3.Client) {
	t.Helper()
	ctx := t.Context()
	for _, step := range []func() error{
		func() error { _, err := root.RoleAdd(ctx, "locks"); return err },
		func() error {
			_, err := root.RoleGrantPermission(ctx, "locks", "holdfast/", clientv3.GetPrefixRangeEnd("holdfast/"),
				clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := root.UserAdd(ctx, "app", "secret"); return err },
		func() error { _, err := root.UserGrantRole(ctx, "app", "locks"); return err },
		func() error { _, err := root.UserAdd(ctx, "root", "secret"); return err },
		func() error { _, err := root.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := root.AuthEnable(ctx); return err },
	} {
		ok(t, step())
	}
}

// authentications is how many the server has begun. Each takes it 50 to 100 ms of a core.
func (w *world) authentications(t *testing.T) int {
	t.Helper()
	return w.counted(t, `grpc_server_started_total\{grpc_method="Authenticate".*\}`)
}

// counted is what the server says in its metrics.
func (w *world) counted(t *testing.T, what string) int {
	t.Helper()
	answer, err := http.Get("http://" + w.server.Addr() + "/metrics")
	ok(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	ok(t, err)
	found := regexp.MustCompile(`(?m)^` + what + ` (\d+)`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("the server does not tell %s", what)
	}
	n, err := strconv.Atoi(string(found[1]))
	ok(t, err)
	return n
}

// All leases of a process are renewed, again and again, over one stream. A server could not authenticate so many streams within a TTL.
func TestLeasesRenewedTogetherCostOneAuthentication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secure(t, w.direct)
	locks := locker(t, etcdlock.New(dial(t, w.server.Addr(), "app", "secret")))
	leases := make([]*core.Lease, 150)
	var acquiring sync.WaitGroup
	for i := range leases {
		acquiring.Go(func() {
			leases[i] = acquire(t, locks, fmt.Sprint("name-", i), core.WithRenewEvery(500*time.Millisecond))
		})
	}
	acquiring.Wait()
	all := func() { // renewed from now on
		t.Helper()
		before := make([]time.Time, len(leases))
		for i, x := range leases {
			before[i] = x.ValidUntil()
		}
		for i, x := range leases {
			eventually(t, "it is renewed", func() bool { return x.Err() != nil || x.ValidUntil().After(before[i]) })
			ok(t, x.Err())
		}
	}
	all() // the stream is open
	before := w.authentications(t)
	for range 3 {
		all()
	}
	if n := w.authentications(t) - before; n > 0 {
		t.Errorf("%d authentications for 3 renewals of %d leases", n, len(leases))
	}
}

func TestAWaiterCostsNoAuthenticationEachTimeItLooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secure(t, w.direct)
	store := etcdlock.New(dial(t, w.server.Addr(), "app", "secret"))
	defer func() { ok(t, store.Close(t.Context())) }()
	owner := driver.Claim{Name: "name", Token: "owner", TTL: longTTL}
	_, err := store.Acquire(t.Context(), owner)
	ok(t, err)
	before := w.authentications(t)
	ctx, cancel := context.WithTimeout(t.Context(), 9*driver.Recheck(longTTL)/2)
	defer cancel()
	waits(ctx, t, store, driver.Claim{Name: "name", Token: "waiter", TTL: longTTL})
	if n := w.authentications(t) - before; n > 2 {
		t.Errorf("%d authentications for a wait of 5 looks, not one for keep-alives and one for watches", n)
	}
}

// A stream has the token of its beginning, which the server forgets when it was not used for some minutes. Here it forgets all of them
// at once.
func TestWatchesOutliveTheTokenOfTheirStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secure(t, w.direct)
	root := dial(t, w.server.Addr(), "root", "secret")
	store := etcdlock.New(dial(t, w.server.Addr(), "app", "secret"))
	defer func() { ok(t, store.Close(t.Context())) }()
	c := driver.Claim{Name: "name", Token: "owner", TTL: longTTL}
	_, err := store.Acquire(t.Context(), c)
	ok(t, err)
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() { _, _ = store.Wait(ctx, driver.Claim{Name: c.Name, Token: "waiter", TTL: c.TTL}) })
		eventually(t, "it watches, beside what keeps the stream", func() bool { return w.counted(t, "etcd_debugging_mvcc_watcher_total") == 2 })
		cancel()
		waiting.Wait()
		etcdlock.Older(store, time.Hour)
		_, err = root.AuthDisable(t.Context())
		ok(t, err)
		_, err = w.direct.AuthEnable(t.Context())
		ok(t, err)
	}
}
