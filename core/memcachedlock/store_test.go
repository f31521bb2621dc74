package memcachedlock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memcachedlock"
)

func TestWhatCannotWorkIsRefusedByNew(t *testing.T) {
	t.Parallel()
	mc := memcache.New("127.0.0.1:1")
	backendtest.RefusedByNew(t, map[string]driver.Driver{
		"nil client":  memcachedlock.New(nil),
		"51 bytes":    memcachedlock.New(mc, memcachedlock.WithPrefix(strings.Repeat("x", 51))),
		`"a b"`:       memcachedlock.New(mc, memcachedlock.WithPrefix("a b")),
		"\"a\\x7fb\"": memcachedlock.New(mc, memcachedlock.WithPrefix("a\x7fb")),
	})
	for _, prefix := range []string{"", strings.Repeat("x", 50), "{a}:"} {
		_, err := core.New(memcachedlock.New(mc, memcachedlock.WithPrefix(prefix)))
		ok(t, err)
	}
}

func TestATTLThatMemcachedCannotCountIsRefused(t *testing.T) {
	t.Parallel()
	mc := dial(t, servers.Memcached(t).Addr())
	s := memcachedlock.New(mc)
	_, err := core.New(s, core.WithTTL(2*time.Second-time.Millisecond))
	is(t, err, core.ErrInvalid)
	_, err = core.New(s, core.WithDedup(time.Hour))
	is(t, err, core.ErrInvalid)
	const month = 30 * 24 * time.Hour
	c := claim("name", "token")
	for _, c.TTL = range []time.Duration{-1, 0, month - 2*time.Second + 1, month, 1 << 62} {
		_, err := s.Acquire(t.Context(), c)
		is(t, err, driver.ErrNotSent)
		if _, err := mc.Get("holdfast:name"); !errors.Is(err, memcache.ErrCacheMiss) {
			t.Errorf("TTL %s: an item, %v", c.TTL, err)
		}
	}
	c.TTL = month - 2*time.Second
	grant(t, s, c)
	_, err = s.Acquire(t.Context(), claim("name", "other"))
	isHeld(t, err)
	c.TTL = month
	is(t, s.Renew(t.Context(), []driver.Claim{c})[0], driver.ErrNotSent)
}

func TestForeignValuesAreHeldWhateverTheyLookLike(t *testing.T) {
	t.Parallel()
	mc := dial(t, servers.Memcached(t).Addr())
	s := memcachedlock.New(mc)
	for i, value := range []string{
		"", "x", "\x1f", "x\x1f2000", "x\x1fy\x1fz", "x\x1f-1\x1fz", "x\x1f99999999999999999999\x1fz", "x\x1f2592000001\x1fz",
		"x\x1f2000\x1f" + strings.Repeat("l", driver.MaxLabel+1),
	} {
		name := fmt.Sprint("name-", i)
		ok(t, mc.Set(&memcache.Item{Key: "holdfast:" + name, Value: []byte(value)}))
		c := claim(name, "token")
		_, err := s.Acquire(t.Context(), c)
		held, isHeld := errors.AsType[*driver.Held](err)
		if !isHeld || held.Label != "" || held.Remaining != 0 {
			t.Errorf("value %q: %+v", value, err)
		}
		for _, token := range []string{"token", "", "\x1f"} {
			c.Token = token
			is(t, s.Release(t.Context(), c), driver.ErrNotOwner)
			is(t, s.Renew(t.Context(), []driver.Claim{c})[0], driver.ErrNotOwner)
		}
		item, err := mc.Get("holdfast:" + name)
		ok(t, err)
		if string(item.Value) != value {
			t.Errorf("value %q became %q", value, item.Value)
		}
	}
}

func TestABatchOfRenewalsAnswersForEveryServer(t *testing.T) {
	t.Parallel()
	gone := servers.Memcached(t)
	mc := dial(t, servers.Memcached(t).Addr(), gone.Addr())
	s := memcachedlock.New(mc)
	claims := make([]driver.Claim, 128)
	for i := range claims {
		claims[i] = claim(fmt.Sprintf("%0200d", i), "token")
		grant(t, s, claims[i])
	}
	ok(t, errors.Join(s.Renew(t.Context(), claims)...))
	gone.Kill()
	var renewed, unknown int
	for _, err := range s.Renew(t.Context(), claims) {
		switch {
		case err == nil:
			renewed++
		case errors.Is(err, driver.ErrNotOwner):
			t.Error("a server that does not answer has said that it is not ours")
		default:
			unknown++
		}
	}
	if renewed < 20 || unknown < 20 {
		t.Errorf("%d renewed, %d unknown", renewed, unknown)
	}
}
