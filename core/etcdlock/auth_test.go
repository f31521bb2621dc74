package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
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

// secured returns a Store of a user with a password.
func (w *world) secured(t *testing.T) *Store {
	t.Helper()
	secure(t, w.direct)
	s := New(dial(t, w.server.Addr(), "app", "secret"))
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// Each authentication takes a server 50 to 100 ms of a core. So all leases of a process are renewed over one stream, and its waiters
// watch over another.
func TestRenewalsAndLooksCostNoAuthentications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.secured(t)
	authentications := func() int { return w.counted(t, `grpc_server_started_total\{grpc_method="Authenticate".*\}`) }
	claims := make([]driver.Claim, 50)
	for i := range claims {
		claims[i] = driver.Claim{Name: fmt.Sprint("name-", i), Token: "owner", TTL: longTTL}
		take(t, s, claims[i])
	}
	before := authentications()
	for range 3 {
		ok(t, errors.Join(s.Renew(t.Context(), claims)...))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 9*driver.Recheck(longTTL)/2)
	defer cancel()
	waits(ctx, t, s, driver.Claim{Name: "name-0", Token: "waiter", TTL: longTTL})
	if n := authentications() - before; n > 2 {
		t.Errorf("%d authentications for 3 renewals of %d leases and 5 looks of a waiter, not one for each", n, len(claims))
	}
}

// A stream has the token of its beginning, which the server forgets when it was not used for some minutes. Here it forgets all of them
// at once.
func TestWatchesOutliveTheTokenOfTheirStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.secured(t)
	root := dial(t, w.server.Addr(), "root", "secret")
	take(t, s, driver.Claim{Name: "name", Token: "owner", TTL: longTTL})
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() { _, _ = s.Wait(ctx, driver.Claim{Name: "name", Token: "waiter", TTL: longTTL}) })
		eventually(t, "it watches, beside what keeps the stream", func() bool { return w.counted(t, "etcd_debugging_mvcc_watcher_total") == 2 })
		cancel()
		waiting.Wait()
		st := s.keepAlives.stream(s.client)
		st.mu.Lock()
		st.watches.began = st.watches.began.Add(-time.Hour)
		st.mu.Unlock()
		_, err := root.AuthDisable(t.Context())
		ok(t, err)
		_, err = w.direct.AuthEnable(t.Context())
		ok(t, err)
	}
}
