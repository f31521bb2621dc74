package redislock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// What was never renewed shows no fence, and those who share a name have the same one, or none.
func TestEveryHolderOnRedisHasAHandleThatIsNoSecret(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	process := func() *core.Locker {
		return locker(t, dial(t, &redis.Options{Addr: share.Addr}), redislock.WithPrefix(share.Prefix))
	}
	operator := operates(t, rdb, redislock.WithPrefix(share.Prefix))
	for name, kinds := range map[string][]core.Option{
		"fresh": {core.WithoutRenewal()}, "shared": {core.WithShared(), core.WithShared()}, "limited": {core.WithLimit(2), core.WithLimit(3)},
	} {
		var leases []*core.Lease
		for _, kind := range kinds {
			leases = append(leases, acquire(t, process(), name, kind, core.WithTTL(time.Minute)))
		}
		info, err := operator.Inspect(t.Context(), name)
		ok(t, err)
		handles := []string{info.Handle}
		if len(kinds) > 1 {
			handles = []string{info.Holders[0].Handle, info.Holders[1].Handle}
		}
		secrets := append(rdb.ZRange(t.Context(), "{"+share.Prefix+name+"}:v1:holders", 0, -1).Val(), rdb.Get(t.Context(), share.Prefix+name).Val())
		for _, handle := range handles {
			if len(handle) != 16 || strings.Contains(strings.Join(secrets, " "), handle) {
				t.Errorf("%s: handle %q", name, handle)
			}
			ok(t, operator.Evict(t.Context(), name, handle))
		}
		for _, x := range leases {
			is(t, x.Release(t.Context()), core.ErrLost)
		}
		ok(t, acquire(t, operator.Locker, name, core.WithWait(0)).Release(t.Context()))
	}
	if keys := rdb.Keys(t.Context(), "*"+share.Prefix+"*").Val(); len(keys) != 1 {
		t.Errorf("left: %q", keys)
	}
}
