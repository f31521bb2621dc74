package main

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// layers are Holdfast's own: where the time of an uncontended pair goes.
func layers() []contestant {
	return []contestant{
		layer("driver", "redislock alone, without core", func(ctx context.Context, l *layered, name string) (lease, error) {
			x := &driverLease{l.store, driver.Claim{Name: name, Token: "1234567890123456789012", TTL: ttl}}
			_, err := l.store.Acquire(ctx, x.claim)
			return x, err
		}),
		layer("driver, deadline", "the same with a deadline for each pair", func(ctx context.Context, l *layered, name string) (lease, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			x := &driverLease{l.store, driver.Claim{Name: name, Token: "1234567890123456789012", TTL: ttl}}
			if _, err := l.store.Acquire(ctx, x.claim); err != nil {
				cancel()
				return nil, err
			}
			defer cancel()
			return released{}, x.Release(ctx)
		}),
		layer("background", "Acquire and Release with a context that never ends", func(ctx context.Context, l *layered, name string) (lease, error) {
			x, err := l.locks.Acquire(context.WithoutCancel(ctx), name)
			return x, err
		}),
		layer("Do", "Do with work that does nothing", func(ctx context.Context, l *layered, name string) (lease, error) {
			return released{}, l.locks.Do(ctx, name, func(context.Context) error { return nil })
		}),
	}
}

func layersScenario() scenario {
	s := pairScenario(1)
	s.name = "layers"
	s.title = "Where an uncontended pair's time goes, beside the floor"
	s.contestants = slices.Concat([]string{floorName, "driver", "driver, deadline", "background"}, ours, []string{"Do"})
	return s
}

func layer(name, settings string, lock func(context.Context, *layered, string) (lease, error)) contestant {
	return contestant{
		name:     name,
		settings: settings,
		prefix:   "holdfast:",
		open: func(addr string, t *traffic) (locker, error) {
			rdb := client(addr, t)
			store := redislock.New(rdb)
			locks, err := core.New(store)
			return &layered{rdb, store, locks, lock}, err
		},
	}
}

type layered struct {
	rdb   *redis.Client
	store *redislock.Store
	locks *core.Locker
	how   func(context.Context, *layered, string) (lease, error)
}

func (l *layered) lock(ctx context.Context, name string) (lease, error) { return l.how(ctx, l, name) }

func (l *layered) close(ctx context.Context) error {
	defer l.rdb.Close()
	return l.locks.Close(ctx)
}

type driverLease struct {
	store *redislock.Store
	claim driver.Claim
}

func (x *driverLease) Release(ctx context.Context) error { return x.store.Release(ctx, x.claim) }

// released is the lease of a call that has released it already.
type released struct{}

func (released) Release(context.Context) error { return nil }
