package redislock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// The holders have a key of their own beside the lock. It was evicted, as it has a TTL; or it has gone with the
// last of them in the very millisecond in which the next one comes.
func TestHoldersWhoseKeyHasGoneDoNotStayForEver(t *testing.T) {
	t.Parallel()
	rdb := dial(t, &redis.Options{Addr: servers.Redis(t).Addr()})
	s := store(t, rdb)
	reader := func(token string) driver.Claim {
		return driver.Claim{Name: "name", Token: strings.Repeat(token, 22), TTL: time.Minute, Shared: true}
	}
	_, err := s.Acquire(t.Context(), reader("a"))
	ok(t, err)
	holders := "{holdfast:name}:v1:holders"
	if n := rdb.Del(t.Context(), holders).Val(); n != 1 {
		t.Fatalf("%d keys at %s", n, holders)
	}
	_, err = s.Acquire(t.Context(), reader("b"))
	ok(t, err)
	if left := rdb.PTTL(t.Context(), holders).Val(); left <= 0 {
		t.Errorf("the holders have a TTL of %v", left)
	}
}
