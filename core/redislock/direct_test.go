package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// Whoever deletes a member may leave behind what it has left there for a grant.
func TestALookWithoutItsEntryIsGrantedNothing(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	rdb := dial(t, &redis.Options{Addr: server.Addr()})
	store := redislock.New(rdb)
	t.Cleanup(func() { _ = store.Close(context.Background()) }) // nothing is left to lose
	held, c := claimBy("name", "holder"), claimBy("name", "waiter")
	_, err := store.Acquire(t.Context(), held)
	ok(t, err)
	look(t, store, c)
	member := rdb.ZRange(t.Context(), lineKey, 0, 0).Val()[0]
	ok(t, rdb.ZRem(t.Context(), lineKey, member).Err())
	ok(t, rdb.HDel(t.Context(), beatsKey, member).Err())
	ok(t, store.Release(t.Context(), held))
	if err := store.Renew(t.Context(), []driver.Claim{c})[0]; !errors.Is(err, driver.ErrNotOwner) {
		t.Errorf("it owns the name: %v", err)
	}
}

func claimBy(name, token string) driver.Claim {
	return driver.Claim{Name: name, Token: (token + strings.Repeat("-", 22))[:22], TTL: 10 * time.Second}
}

func TestWhoSharesANameServesTheFirstOfTheQueueToo(t *testing.T) {
	t.Parallel()
	free := func(t *testing.T, rdb *redis.Client) {
		t.Helper()
		ok(t, rdb.Del(t.Context(), "holdfast:name").Err()) // as if its TTL had ended
	}
	for what, does := range map[string]func(t *testing.T, rdb *redis.Client, s *redislock.Store, held, other driver.Claim){
		"the last one that ends": func(t *testing.T, _ *redis.Client, s *redislock.Store, held, other driver.Claim) {
			_ = s.Release(t.Context(), other)
			ok(t, s.Release(t.Context(), held))
		},
		"one that asks for it": func(t *testing.T, rdb *redis.Client, s *redislock.Store, _, other driver.Claim) {
			free(t, rdb)
			_, err := s.Acquire(t.Context(), other)
			if _, held := errors.AsType[*driver.Held](err); !held {
				t.Error(err)
			}
		},
		"one that waits": func(t *testing.T, rdb *redis.Client, s *redislock.Store, _, other driver.Claim) {
			free(t, rdb)
			look(t, s, other)
		},
		"one that leaves the queue": func(t *testing.T, rdb *redis.Client, s *redislock.Store, _, other driver.Claim) {
			free(t, rdb)
			is(t, s.Release(t.Context(), other), driver.ErrNotOwner)
		},
	} {
		for kind, of := range map[string]func(*driver.Claim){"shared": reader, "limited": permit} {
			t.Run(kind+": "+what, func(t *testing.T) {
				t.Parallel()
				rdb := dial(t, &redis.Options{Addr: servers.Redis(t).Addr()})
				s := store(t, rdb)
				held, other, c := with(claimBy("name", "holder"), of), with(claimBy("name", "other"), of), claimBy("name", "waiter")
				_, err := s.Acquire(t.Context(), held)
				ok(t, err)
				look(t, s, c)
				does(t, rdb, s, held, other)
				ok(t, s.Renew(t.Context(), []driver.Claim{c})[0])
			})
		}
	}
}
