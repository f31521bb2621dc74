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

// A command that was delayed until somebody else has the name must not touch it.
func TestALateCommandNeverTouchesTheNextHolder(t *testing.T) {
	t.Parallel()
	for what, late := range map[string]func(ctx context.Context, s *memcachedlock.Store, c driver.Claim) error{
		"release": func(ctx context.Context, s *memcachedlock.Store, c driver.Claim) error { return s.Release(ctx, c) },
		"renewal": func(ctx context.Context, s *memcachedlock.Store, c driver.Claim) error {
			return s.Renew(ctx, []driver.Claim{c})[0]
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			addr := servers.Memcached(t).Addr()
			slow := dial(t, addr)
			direct := dial(t, addr)
			mine, theirs := claim("name", "mine"), claim("name", "theirs")
			other := memcachedlock.New(direct)
			before(slow, "cas ", func() { // ours has expired, and another one came
				if err := direct.Delete("holdfast:name"); err != nil {
					t.Error(err)
				}
				grant(t, other, theirs)
			})
			s := memcachedlock.New(slow)
			grant(t, s, mine)
			is(t, late(t.Context(), s, mine), driver.ErrNotOwner)
			ok(t, other.Renew(t.Context(), []driver.Claim{theirs})[0])
			ok(t, other.Release(t.Context(), theirs))
		})
	}
}

func TestTwoCommandsOfOneOwnerDoNotTakeEachOtherForAThief(t *testing.T) {
	t.Parallel()
	addr := servers.Memcached(t).Addr()
	slow := dial(t, addr)
	c := claim("name", "token")
	direct := memcachedlock.New(dial(t, addr))
	before(slow, "cas ", func() { ok(t, direct.Renew(t.Context(), []driver.Claim{c})[0]) })
	s := memcachedlock.New(slow)
	grant(t, s, c)
	ok(t, s.Renew(t.Context(), []driver.Claim{c})[0])
	ok(t, s.Release(t.Context(), c))
}

func TestANameThatComesFreeInMidAcquireIsTaken(t *testing.T) {
	t.Parallel()
	addr := servers.Memcached(t).Addr()
	slow := dial(t, addr)
	direct := memcachedlock.New(dial(t, addr))
	theirs := claim("name", "theirs")
	grant(t, direct, theirs)
	before(slow, "gets ", func() { ok(t, direct.Release(t.Context(), theirs)) })
	grant(t, memcachedlock.New(slow), claim("name", "mine"))
}

func TestNothingIsSentForACallThatIsOver(t *testing.T) {
	t.Parallel()
	addr := servers.Memcached(t).Addr()
	slow := dial(t, addr)
	s := memcachedlock.New(slow)
	c := claim("name", "token")
	ctx, cancel := context.WithCancel(t.Context())
	before(slow, "gets ", cancel)
	grant(t, s, c)
	is(t, s.Release(ctx, c), driver.ErrNotSent) // the gets was under way, the cas was not
	ok(t, s.Renew(t.Context(), []driver.Claim{c})[0])
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
