package memcachedlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/memcachedlock"
)

// before has f run once, right before a command of the client is sent.
func before(mc *memcache.Client, command string, f func()) {
	var once atomic.Bool
	eachWrite(mc, func(b []byte) {
		if bytes.HasPrefix(b, []byte(command)) && once.CompareAndSwap(false, true) {
			f()
		}
	})
}

// eachWrite has f run before anything is sent.
func eachWrite(mc *memcache.Client, f func([]byte)) {
	mc.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, addr)
		return &hooked{conn, f}, err
	}
}

type hooked struct {
	net.Conn
	write func([]byte)
}

func (h *hooked) Write(b []byte) (int, error) {
	h.write(b)
	return h.Conn.Write(b)
}

// A call is two commands. Right before the second one is sent somebody else may come, or go: its own command that was sent again, too.
func TestWhatComesBetweenTwoCommandsOfACallIsRespected(t *testing.T) {
	t.Parallel()
	mine, theirs := claim("name", "mine"), claim("name", "theirs")
	acquire := func(ctx context.Context, s driver.Driver) error { _, err := s.Acquire(ctx, mine); return err }
	renew := func(ctx context.Context, s driver.Driver) error { return s.Renew(ctx, []driver.Claim{mine})[0] }
	release := func(ctx context.Context, s driver.Driver) error { return s.Release(ctx, mine) }
	expires := func(t *testing.T, other driver.Driver, direct *memcache.Client, _ func()) {
		t.Helper()
		ok(t, direct.Delete("holdfast:name"))
		grant(t, other, theirs)
	}
	type meanwhile = func(t *testing.T, other driver.Driver, direct *memcache.Client, leave func())
	for what, c := range map[string]struct {
		before driver.Claim
		at     string
		does   meanwhile
		call   func(ctx context.Context, s driver.Driver) error
		want   error
		owner  driver.Claim
	}{
		"a release after another's grant": {mine, "cas ", expires, release, driver.ErrNotOwner, theirs},
		"a renewal after another's grant": {mine, "cas ", expires, renew, driver.ErrNotOwner, theirs},
		"a renewal beside one of the same": {mine, "cas ", func(t *testing.T, other driver.Driver, _ *memcache.Client, _ func()) {
			t.Helper()
			ok(t, renew(t.Context(), other))
		}, renew, nil, mine},
		"an acquire of what has come free": {theirs, "gets ", func(t *testing.T, other driver.Driver, _ *memcache.Client, _ func()) {
			t.Helper()
			ok(t, other.Release(t.Context(), theirs))
		}, acquire, nil, mine},
		"a release of a caller that has left": {mine, "gets ", func(_ *testing.T, _ driver.Driver, _ *memcache.Client, leave func()) { leave() }, release, driver.ErrNotSent, mine},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			addr := servers.Memcached(t).Addr()
			slow, direct := dial(t, addr), dial(t, addr)
			other := memcachedlock.New(direct)
			grant(t, other, c.before)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			before(slow, c.at, func() { c.does(t, other, direct, leave) })
			if err := c.call(ctx, memcachedlock.New(slow)); !errors.Is(err, c.want) {
				t.Errorf("%v, and not %v", err, c.want)
			}
			ok(t, other.Renew(t.Context(), []driver.Claim{c.owner})[0])
		})
	}
}

func TestARefusedDialSaysThatNothingWasSent(t *testing.T) {
	t.Parallel()
	server := servers.Memcached(t)
	server.Kill()
	for what, mc := range map[string]*memcache.Client{"refused": dial(t, server.Addr()), "no servers": dial(t)} {
		s := memcachedlock.New(mc)
		c := claim("name", "token")
		_, err := s.Acquire(t.Context(), c)
		for call, err := range map[string]error{
			"acquire": err, "renewal": s.Renew(t.Context(), []driver.Claim{c})[0], "release": s.Release(t.Context(), c),
		} {
			if !errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrNotOwner) {
				t.Errorf("%s, %s: %v", what, call, err)
			}
		}
	}
}

func TestAFullServerRefusesAndNeverSaysHeld(t *testing.T) {
	t.Parallel()
	server := servers.Memcached(t, "-M", "-m", "2")
	mc := dial(t, server.Addr())
	for size := 1 << 19; size > 16; size /= 2 { // until there is no room in any class of sizes
		var err error
		for i := 0; err == nil; i++ {
			err = mc.Set(&memcache.Item{Key: fmt.Sprint(size, "-", i), Value: make([]byte, size)})
		}
	}
	_, err := locker(t, mc).TryAcquire(t.Context(), "name")
	is(t, err, core.ErrUnavailable)
	if errors.Is(err, core.ErrHeld) || !strings.Contains(err.Error(), "give it more memory") {
		t.Error(err)
	}
}
