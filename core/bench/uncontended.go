package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

var release = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

// floor is the least that a lock with an owner-checked release can be.
func floor(rdb *redis.Client, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		token := fmt.Sprintf("%022d", time.Now().UnixNano())
		ok, err := rdb.SetNX(ctx, name, token, 10*time.Second).Result()
		if err != nil || !ok {
			return errors.Join(err, fmt.Errorf("set: %v", ok))
		}
		return release.Run(ctx, rdb, []string{name}, token).Err()
	}
}

func pair(locks *core.Locker, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		lease, err := locks.Acquire(ctx, name)
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	}
}

func uncontended(ctx context.Context, addr string, rounds int, length time.Duration) {
	rdb := client(addr)
	defer rdb.Close()
	store := redislock.New(rdb)
	locks, err := core.New(store)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = locks.Close(ctx) }()
	cancellable := func(pair func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return pair(ctx)
		}
	}
	work := func(context.Context) error { return nil }
	contestants := []contestant{
		{"floor", floor(rdb, "floor")},
		{"redislock alone", func(ctx context.Context) error {
			c := driver.Claim{Name: "alone", Token: "1234567890123456789012", TTL: 10 * time.Second}
			if _, err := store.Acquire(ctx, c); err != nil {
				return err
			}
			return store.Release(ctx, c)
		}},
		{"redislock alone, deadline", func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			c := driver.Claim{Name: "alone", Token: "1234567890123456789012", TTL: 10 * time.Second}
			if _, err := store.Acquire(ctx, c); err != nil {
				return err
			}
			return store.Release(ctx, c)
		}},
		{"Acquire, Release", pair(locks, "pair")},
		{"Acquire, Release, cancellable ctx", cancellable(pair(locks, "pair"))},
		{"Do, cancellable ctx", cancellable(func(ctx context.Context) error { return locks.Do(ctx, "pair", work) })},
	}
	rates := race(ctx, contestants, rounds, length)
	printRace("One goroutine, one name, nobody else wants it", contestants, rates, "pairs/s")
}
