package natslock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func TestWhatCannotWorkIsRefusedByNew(t *testing.T) {
	t.Parallel()
	js := dial(t, "127.0.0.1:1")
	backendtest.RefusedByNew(t, map[string]driver.Driver{
		"nil JetStream": New(nil, "locks"),
		`bucket ""`:     New(js, ""),
		`bucket "a.b"`:  New(js, "a.b"),
	})
	locks, err := core.New(New(js, "locks"))
	ok(t, err)
	_, err = locks.With(core.WithTTL(999 * time.Millisecond))
	is(t, err, core.ErrInvalid) // shorter than a TTL of NATS
}

func TestNoTokenIsAtTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := minute("name", "secret-1")
	owner.Label = "web 1"
	fence := granted(t, w.near, owner).Fence
	if entry, err := w.bucket.Get(t.Context(), "name.lock"); err != nil || entry.Revision() != fence {
		t.Errorf("fence %d is not the revision of the grant; %v", fence, err)
	}
	ok(t, w.near.Renew(t.Context(), []driver.Claim{owner})[0])
	w.near.queues(t, minute("name", "secret-2"))
	left, kept := handingOff("left", "secret-4"), minute("kept", "secret-4")
	kept.Keep = time.Minute
	for _, c := range []driver.Claim{reader("read", "secret-4"), permit("limited", "secret-4"), kept, left} {
		granted(t, w.near, c)
		if c.Keep > 0 {
			ok(t, w.near.Release(t.Context(), c))
		}
	}
	form := regexp.MustCompile(`^(name|read|limited|kept|left)\.(lock=v1 {"kind":"(exclusive|shared|limited|kept|handed off)","holders":\[|queue\.[0-9]+=v1 )` +
		`{"id":"[0-9a-f]{32}","ttl":[0-9]+(,"(limit|order|since|ends)":[0-9]+)*(,"label":"web 1")?}(\]})?$`)
	all := keys(t, w.bucket)
	for _, key := range all {
		entry, err := w.bucket.Get(t.Context(), key)
		ok(t, err)
		if pair := key + "=" + string(entry.Value()); !form.MatchString(pair) {
			t.Errorf("%q", pair)
		}
	}
	if len(all) != 6 {
		t.Errorf("%d keys", len(all))
	}
}

// advice returns what an operator is told about an error.
func advice(t *testing.T, err error) string {
	t.Helper()
	if !errors.Is(err, driver.ErrRefused) || driver.Explain(err).Nobody {
		t.Errorf("%v is not refused", err)
	}
	return driver.Reason(err)
}

func TestABucketThatIsNotForLocksIsRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made, err := w.near.js.Stream(t.Context(), "KV_locks")
	ok(t, err)
	for want, change := range map[string]func(c *jetstream.StreamConfig){
		"does not exist": nil,
		// All that an older server can make.
		"nats-server 2.11": func(c *jetstream.StreamConfig) { c.AllowMsgTTL, c.SubjectDeleteMarkerTTL = false, 0 },
		"history":          func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 2 },
		"TTL of its own":   func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"mirror": func(c *jetstream.StreamConfig) {
			c.Mirror, c.Subjects, c.SubjectDeleteMarkerTTL = &jetstream.StreamSource{Name: "KV_locks"}, nil, 0
		},
		"allow_direct": func(c *jetstream.StreamConfig) { c.AllowDirect = false },
		"max_bytes":    func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 30 },
		"max_msgs":     func(c *jetstream.StreamConfig) { c.MaxMsgs = 1 << 20 },
		"discard":      func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
	} {
		name := fmt.Sprintf("bucket-%x", want)
		if change != nil {
			config := made.CachedInfo().Config
			config.Name, config.Subjects = "KV_"+name, []string{"$KV." + name + ".>"}
			change(&config)
			_, err := w.near.js.CreateStream(t.Context(), config)
			ok(t, err)
		}
		store := New(w.near.js, name)
		_, err := store.Acquire(t.Context(), minute("name", "token"))
		if got := advice(t, err); !strings.Contains(got, want) || strings.Contains(got, name) {
			t.Errorf("%q: %v, with the advice %q", want, err, got)
		}
		if err := store.Check(t.Context()); !strings.Contains(advice(t, err), want) {
			t.Errorf("%q: checked: %v", want, err)
		}
		locks := locker(t, store)
		is(t, locks.Ready(t.Context()), core.ErrUnavailable)
	}
}

// What is set after a Store's first use it cannot see. Why a lease cannot be renewed, it says.
func TestABucketThatIsFullSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := minute("name", "token")
	granted(t, w.near, c)
	stream, err := w.near.js.Stream(t.Context(), "KV_locks")
	ok(t, err)
	config := stream.CachedInfo().Config
	config.MaxBytes = 1 << 10
	_, err = w.near.js.UpdateStream(t.Context(), config)
	ok(t, err)
	for n := 0; err == nil && n < 100; n++ {
		_, err = w.near.Acquire(t.Context(), minute(fmt.Sprint("name-", n), "token"))
	}
	for what, err := range map[string]error{"an acquire": err, "a renewal": w.near.Renew(t.Context(), []driver.Claim{c})[0]} {
		if !driver.Explain(err).Nobody || !strings.Contains(driver.Reason(err), "max_bytes") {
			t.Errorf("%s: %v, with the advice %q", what, err, driver.Reason(err))
		}
	}
	config.MaxBytes = -1
	_, err = w.near.js.UpdateStream(t.Context(), config)
	ok(t, err)
	ok(t, w.near.Renew(t.Context(), []driver.Claim{c})[0])
}

//nolint:paralleltest // sets the default log
func TestABucketWithoutReplicasIsWeakAndOneThatIsDeletedIsLookedAtAgain(t *testing.T) {
	var log strings.Builder
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	w := newWorld(t)
	memory, single := Bucket("in-memory", 1), Bucket("single", 1)
	memory.Storage = jetstream.MemoryStorage
	w.create(t, memory)
	w.create(t, single)
	for want, config := range map[string]jetstream.KeyValueConfig{"three replicas": single, "in memory": memory} {
		bucket := config.Bucket
		store := New(w.near.js, bucket)
		if err := store.Check(t.Context()); !errors.Is(err, ErrWeak) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bucket, err)
		}
		for n := range 3 {
			granted(t, store, minute(fmt.Sprint("name-", n), "token")) // it can be used
		}
		ok(t, w.near.js.DeleteKeyValue(t.Context(), bucket))
		err := store.Renew(t.Context(), []driver.Claim{minute("name-0", "token")})[0]
		if !driver.Explain(err).Nobody || errors.Is(err, driver.ErrNotOwner) {
			t.Errorf("renewal in a bucket that was deleted: %v", err)
		}
		if err := store.Release(t.Context(), minute("name-0", "token")); !strings.Contains(advice(t, err), "does not exist") {
			t.Errorf("release after that: %v", err)
		}
		w.create(t, config)
		granted(t, store, minute("name", "token")) // it is looked at again
		if told := log.String(); strings.Count(told, "\n") != 1 || !strings.Contains(told, "level=WARN") || !strings.Contains(told, want) {
			t.Errorf("%s: logged %q", bucket, told)
		}
		log.Reset()
	}
	if err := New(nil, "locks").Check(t.Context()); err == nil {
		t.Error("no JetStream")
	}
}

func TestAServerWithoutJetStreamIsRefused(t *testing.T) {
	t.Parallel()
	s := secured(t, `accounts: { PLAIN: { users: [{user: plain, password: secret}] }, FULL: { jetstream: enabled, users: [{user: root, password: secret}] } }`)
	store := New(dial(t, s, nats.UserInfo("plain", "secret")), "locks")
	_, err := store.Acquire(t.Context(), minute("name", "token"))
	if err == nil || !strings.Contains(driver.Reason(err), "JetStream") {
		t.Errorf("%v, with the advice %q", err, driver.Reason(err))
	}
}

// secured starts a server with this in its configuration, and returns its address.
func secured(t *testing.T, config string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	ok(t, os.WriteFile(file, []byte(config), 0o600))
	return servers.NATS(t, "--config", file).Addr()
}

// The permissions that docs/backends/nats.md gives.
var (
	publish = []string{
		"$KV.locks.>", "$JS.API.STREAM.INFO.KV_locks", "$JS.API.STREAM.MSG.GET.KV_locks", "$JS.API.DIRECT.GET.KV_locks", "holdfast.locks.>",
	}
	subscribe = []string{"_INBOX.>", "holdfast.locks.>"}
)

func TestThePermissionsOfTheDocumentationAreEnoughAndEachIsNeeded(t *testing.T) {
	t.Parallel()
	quoted := func(subjects []string) string { return `["` + strings.Join(subjects, `", "`) + `"]` }
	var users strings.Builder
	for i := range len(publish) + 1 { // the last one lacks nothing
		allowed := slices.Clone(publish)
		if i < len(publish) {
			allowed = slices.Delete(allowed, i, i+1)
		}
		fmt.Fprintf(&users, "{user: app%d, password: secret, permissions: {publish: %s, subscribe: %s}}\n", i, quoted(allowed), quoted(subscribe))
	}
	addr := secured(t, "authorization: { users: [ {user: root, password: secret}\n"+users.String()+"] }")
	root := dial(t, addr, nats.UserInfo("root", "secret"))
	_, err := root.CreateKeyValue(t.Context(), Bucket("locks", 1))
	ok(t, err)
	as := func(i int) *Store {
		return New(dial(t, addr, nats.UserInfo(fmt.Sprint("app", i), "secret")), "locks")
	}
	locks, other := locker(t, as(len(publish))), locker(t, as(len(publish)))
	x := acquire(t, locks, "name", core.WithDedup(time.Hour), core.WithTTL(ttl), core.WithRenewEvery(ttl/10))
	got := make(chan error, 1)
	go func() { got <- other.Do(t.Context(), "name", func(context.Context) error { return nil }) }()
	renewed(t, x)
	ok(t, x.Complete(t.Context()))
	ok(t, <-got)
	for _, l := range []*core.Locker{locks, other} {
		x := acquire(t, l, "read", core.WithShared(), core.WithRenewEvery(time.Minute/100))
		renewed(t, x)
		defer func() { ok(t, x.Release(t.Context())) }()
	}
	_, err = locks.TryAcquire(t.Context(), "name", core.WithDedup(time.Hour))
	is(t, err, core.ErrDuplicate)
	for i, lacking := range publish[:4] { // what is told by the last one is only a hint
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		s, c := as(i), minute("other", "token")
		_, err := s.Acquire(ctx, c)
		err = errors.Join(err, s.Unmark(ctx, c.Name, "scope"), s.Release(ctx, c))
		cancel()
		if !errors.Is(err, driver.ErrRefused) || !strings.Contains(driver.Reason(err), "lacks a permission") {
			t.Errorf("without %s: %v", lacking, err)
		}
	}
}

func TestABucketOfAnotherDomainIsReached(t *testing.T) {
	t.Parallel()
	addr := secured(t, `jetstream: { domain: hub }`)
	js, err := jetstream.NewWithDomain(dial(t, addr).Conn(), "hub")
	ok(t, err)
	_, err = js.CreateKeyValue(t.Context(), Bucket("locks", 1))
	ok(t, err)
	store := New(js, "locks")
	c := minute("name", "token")
	granted(t, store, c)
	ok(t, store.Renew(t.Context(), []driver.Claim{c})[0])
	ok(t, store.Release(t.Context(), c))
}

// The client forgets why it could not connect before it tries again, so that is not always told.
func TestAConnectionThatCannotBeHadSaysWhereAndWhatToDo(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{secured(t, "authorization: { user: app, password: secret }"), "127.0.0.1:1"} {
		conn, err := nats.Connect("nats://"+addr, nats.UserInfo("app", "hunter2"), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.IgnoreAuthErrorAbort())
		ok(t, err)
		t.Cleanup(conn.Close)
		js, err := jetstream.New(conn)
		ok(t, err)
		_, err = New(js, "locks").Acquire(t.Context(), minute("name", "token"))
		if text := fmt.Sprint(err); !strings.Contains(text, addr) || strings.Contains(text, "hunter2") || !strings.Contains(driver.Reason(err), "user or credentials") {
			t.Error(err)
		}
	}
}
