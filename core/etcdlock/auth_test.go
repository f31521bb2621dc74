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
	answer, err := http.Get("http://" + w.server.Addr() + "/metrics")
	ok(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	ok(t, err)
	found := regexp.MustCompile(`grpc_server_started_total\{grpc_method="Authenticate".*\} (\d+)`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the server does not tell how many authentications it had")
	}
	n, err := strconv.Atoi(string(found[1]))
	ok(t, err)
	return n
}

// manyLeases are more than a server could authenticate one by one within the shortest TTL.
const manyLeases = 150

func TestLeasesRenewedTogetherCostOneAuthentication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secure(t, w.direct)
	store := etcdlock.New(dial(t, w.server.Addr(), "app", "secret"))
	defer func() { ok(t, store.Close(t.Context())) }()
	claims := make([]driver.Claim, manyLeases)
	for i := range claims {
		claims[i] = driver.Claim{Name: fmt.Sprint("name-", i), Token: "token", TTL: longTTL}
		_, err := store.Acquire(t.Context(), claims[i])
		ok(t, err)
	}
	before, began := w.authentications(t), time.Now()
	for range 3 {
		for i, err := range store.Renew(t.Context(), claims) {
			if err != nil {
				t.Fatalf("claim %d: %v", i, err)
			}
		}
	}
	took := time.Since(began)
	if n := w.authentications(t) - before; n > 1 {
		t.Errorf("%d authentications for 3 renewals of %d leases, in %s", n, manyLeases, took)
	}
	t.Logf("3 renewals of %d leases in %s", manyLeases, took)
}

func TestAProcessWithAPasswordKeepsManyLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secure(t, w.direct)
	locks := locker(t, etcdlock.New(dial(t, w.server.Addr(), "app", "secret")))
	leases := make([]*core.Lease, manyLeases)
	var acquiring sync.WaitGroup
	for i := range leases {
		acquiring.Go(func() { leases[i] = acquire(t, locks, fmt.Sprint("name-", i), core.WithTTL(6*time.Second)) })
	}
	acquiring.Wait()
	time.Sleep(9 * time.Second)
	lost := 0
	for _, x := range leases {
		if x.Err() != nil {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d leases are lost", lost, manyLeases)
	}
	for _, x := range leases {
		_ = x.Release(t.Context())
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
