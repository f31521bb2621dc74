package memcachedlock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/memcachedlock"
)

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
