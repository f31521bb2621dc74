package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/olddriver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// Anybody who may publish can send anything on the channel of a waiter.
func TestOnlyTheMessageOfItsOwnOfferGrantsAWaiterAnything(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	rdb := dial(t, &redis.Options{Addr: server.Addr()})
	store := redislock.New(rdb)
	t.Cleanup(func() { _ = store.CloseIdle(context.Background()) }) // nothing is left to lose
	for what, row := range map[string]struct {
		forge   func(place, number, nonce string) string
		granted bool
	}{
		"a hint":         {func(place, _, _ string) string { return place }, false},
		"another number": {func(place, _, nonce string) string { return place + "\x1f8 " + nonce + " 1795000000000000" }, false},
		"another nonce":  {func(place, number, _ string) string { return place + "\x1f" + number + " NONCE 1795000000000000" }, false},
		"no nonce":       {func(place, number, _ string) string { return place + "\x1f" + number + "  1795000000000000" }, false},
		"no fence":       {func(place, number, nonce string) string { return place + "\x1f" + number + " " + nonce + " " }, false},
		"too many fences": {func(place, number, nonce string) string {
			return place + "\x1f" + number + " " + nonce + " 1795000000000000 4097"
		}, false},
		"something else": {func(place, _, _ string) string { return place + "\x1f\x1f\x00" }, false},
		"what is really its": {func(place, number, nonce string) string {
			return place + "\x1f" + number + " " + nonce + " 1795000000000000"
		}, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name := strings.ReplaceAll(what, " ", "-")
			held := claimBy(name, "holder")
			_, err := store.Acquire(t.Context(), held)
			ok(t, err)
			c := claimBy(name, "waiter")
			c.Place, c.Offer = "place-"+name, 7 // a message for a place is heard by all who stand there
			type outcome struct {
				granted bool
				err     error
			}
			heard := make(chan outcome, 1)
			go func() {
				_, granted, err := store.Offer(t.Context(), c)
				heard <- outcome{granted, err}
			}()
			var member, offer string
			eventually(t, "it is offered", func() bool {
				for field, value := range rdb.HGetAll(t.Context(), "{holdfast:"+name+"}:v1:line:beats").Val() {
					if m, found := strings.CutPrefix(field, "@"); found {
						member, offer = m, value
					}
				}
				return offer != ""
			})
			parts := strings.SplitN(offer, " ", 3)
			channel := ""
			eventually(t, "it is offered", func() bool {
				for _, c := range rdb.PubSubChannels(t.Context(), "*").Val() {
					if strings.HasSuffix(c, member[:22]) {
						channel = c
					}
				}
				return channel != ""
			})
			ok(t, rdb.Publish(t.Context(), channel, row.forge(member[22:], parts[0], parts[1])).Err())
			if got := <-heard; got.err != nil || got.granted != row.granted {
				t.Errorf("%+v", got)
			}
			if err := store.Renew(t.Context(), []driver.Claim{c})[0]; !errors.Is(err, driver.ErrNotOwner) {
				t.Errorf("it owns the name: %v", err)
			}
		})
	}
}

// Scripts of a version without offers drop a member, and leave its offer behind.
func TestAnOfferWithoutAPlaceIsGrantedNothing(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	rdb := dial(t, &redis.Options{Addr: server.Addr()})
	store := redislock.New(rdb)
	t.Cleanup(func() { _ = store.CloseIdle(context.Background()) }) // nothing is left to lose
	held, c := claimBy("name", "holder"), claimBy("name", "waiter")
	_, err := store.Acquire(t.Context(), held)
	ok(t, err)
	c.Place, c.Offer = "place", 1
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, granted, err := store.Offer(ctx, c); granted || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("granted %v, %v", granted, err)
	}
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

func TestWhoSharesANameServesTheOfferToo(t *testing.T) {
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
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			is(t, s.Wait(ctx, other), context.DeadlineExceeded)
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
				c.Place, c.Offer, other.Place = "place", 1, "another place"
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				if _, granted, err := s.Offer(ctx, c); granted || !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("granted %v, %v", granted, err)
				}
				does(t, rdb, s, held, other)
				ok(t, s.Renew(t.Context(), []driver.Claim{c})[0])
			})
		}
	}
}
