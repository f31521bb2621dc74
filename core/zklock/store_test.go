package zklock

import (
	"context"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func TestWhatCannotWorkIsRefusedByNew(t *testing.T) {
	t.Parallel()
	conn, session := new(zk.Conn), new(Session)
	backendtest.RefusedByNew(t, map[string]driver.Driver{
		"no connection":       New(nil, session),
		"no session":          New(conn, nil),
		"WithACL":             New(conn, session, WithACL(nil)),
		`WithRoot("")`:        New(conn, session, WithRoot("")),
		`WithRoot("/")`:       New(conn, session, WithRoot("/")),
		`WithRoot("/a/")`:     New(conn, session, WithRoot("/a/")),
		`WithRoot("/a//b")`:   New(conn, session, WithRoot("/a//b")),
		`WithRoot("/./b")`:    New(conn, session, WithRoot("/./b")),
		`WithRoot("/\u0085")`: New(conn, session, WithRoot("/\u0085")),
		`WithRoot("/🔒")`:      New(conn, session, WithRoot("/\U0001F512")),
	})
	locks, err := core.New(New(conn, session, WithRoot("/a.b/Zürich")))
	ok(t, err)
	_, err = locks.With(core.WithTTL(time.Second))
	is(t, err, core.ErrInvalid) // shorter than any session
}

func TestALeaseLastsTwoFifthsOfItsSession(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t)
	for asked, agreed := range map[time.Duration]time.Duration{
		4 * time.Second: 4 * time.Second,
		time.Hour:       600 * servers.ZooKeeperTick, // what the server agrees to
	} {
		conn, session := connect(t, server.Addr(), asked)
		x := acquire(t, locker(t, New(conn, session)), "name", core.WithTTL(time.Hour), core.WithRenewEvery(200*time.Millisecond))
		for _, when := range []string{"as it was granted", "as it was renewed"} {
			if left := time.Until(x.ValidUntil()); left > agreed*2/5 || left < agreed/10 {
				t.Errorf("%s valid for %s in a session of %s", when, left, agreed)
			}
			renewed(t, x)
		}
		ok(t, x.Release(t.Context()))
	}
}

func TestWithoutTheSessionsDialNothingIsGranted(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t)
	conn, _ := connect(t, server.Addr(), longSession)
	_, err := locker(t, New(conn, new(Session))).TryAcquire(t.Context(), "name")
	is(t, err, core.ErrUnavailable)
	if !strings.Contains(err.Error(), "zk.WithDialer(session.Dial)") {
		t.Errorf("%v does not say what is missing", err)
	}
}

func TestNoTokenIsAtTheServerAndARefusedAcquireWritesNothing(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t)
	conn, session := connect(t, server.Addr(), longSession)
	store := New(conn, session)
	owner := driver.Claim{Name: "a/b", Token: "secret-1", Label: "web 1", TTL: longTTL}
	waiter := driver.Claim{Name: "a/b", Token: "secret-2", Label: "web 2", TTL: longTTL}
	take(t, store, owner)
	written := func() string { return regexp.MustCompile(`Zxid: .*`).FindString(tell(t, server.Addr(), "srvr")) }
	before := written()
	for range 5 {
		_, err := store.Acquire(t.Context(), waiter)
		backendtest.IsHeld(t, err)
	}
	if after := written(); after != before || after == "" {
		t.Errorf("%s, and %s before", after, before)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	waits(ctx, t, store, waiter)
	entries, _, err := conn.Children("/holdfast/a%2Fb")
	ok(t, err)
	form := regexp.MustCompile(`^write-[0-9a-f]{32}-\d{10}=(v1 [0-9a-f]{32} 16000 web 1|w1 web 2)$`)
	for _, entry := range entries {
		data, _, err := conn.Get("/holdfast/a%2Fb/" + entry)
		ok(t, err)
		if pair := entry + "=" + string(data); !form.MatchString(pair) {
			t.Errorf("%q", pair)
		}
	}
	if len(entries) != 2 {
		t.Errorf("in the queue: %q", entries)
	}
}

// tell sends one of ZooKeeper's four-letter words.
func tell(t *testing.T, addr, word string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	ok(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, word)
	ok(t, err)
	answer, err := io.ReadAll(conn)
	ok(t, err)
	return string(answer)
}

func TestTheACLIsThatOfAllNodes(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t)
	stranger, itsSession := connect(t, server.Addr(), longSession)
	conn, session := connect(t, server.Addr(), longSession)
	ok(t, conn.AddAuth("digest", []byte("app:secret")))
	acl := zk.DigestACL(zk.PermRead|zk.PermWrite|zk.PermCreate|zk.PermDelete, "app", "secret")
	locks := locker(t, New(conn, session, WithACL(acl)))
	x := acquire(t, locks, "name")
	for _, path := range []string{"/holdfast", "/holdfast/name"} {
		if _, _, err := stranger.Children(path); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("%s: %v", path, err)
		}
	}
	ok(t, x.Release(t.Context()))
	backendtest.Tells(t, locker(t, New(stranger, itsSession)), "needs read, write, create and delete")
}
