package core_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	old "github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/memlock"
	oldmem "github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func nothing(context.Context) error { return nil }

// TestAgainstTheOldCore compares both, turn by turn in one run. It says the ratios of the medians.
func TestAgainstTheOldCore(t *testing.T) {
	if os.Getenv("HOLDFAST_COMPARE") == "" {
		t.Skip("a benchmark: set HOLDFAST_COMPARE")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type do func(ctx context.Context, name string) error
	compare := func(what string, goroutines, names int, d time.Duration, olds, news do) {
		run := func(f do) float64 {
			var n int64
			var mu sync.Mutex
			var all sync.WaitGroup
			began := time.Now()
			for g := range goroutines {
				all.Go(func() {
					name := fmt.Sprint(what, g%names)
					var mine int64
					for time.Since(began) < d {
						if err := f(ctx, name); err != nil {
							t.Error(err)
							return
						}
						mine++
					}
					mu.Lock()
					defer mu.Unlock()
					n += mine
				})
			}
			all.Wait()
			return float64(n) / time.Since(began).Seconds()
		}
		run(olds)
		run(news)
		var a, b []float64
		for i := range 7 {
			if i%2 == 0 {
				a = append(a, run(olds))
				b = append(b, run(news))
			} else {
				b = append(b, run(news))
				a = append(a, run(olds))
			}
		}
		slices.Sort(a)
		slices.Sort(b)
		t.Logf("%-32s old %9.0f/s (%.0f–%.0f)   new %9.0f/s (%.0f–%.0f)   ratio of medians %.2f", what, a[3], a[0], a[6], b[3], b[0], b[6], b[3]/a[3])
	}

	oldL, err := old.New(oldmem.New())
	if err != nil {
		t.Fatal(err)
	}
	newL, err := core.New(memlock.New())
	if err != nil {
		t.Fatal(err)
	}
	doOld := func(l *old.Locker) do {
		return func(ctx context.Context, name string) error { return l.Do(ctx, name, nothing) }
	}
	doNew := func(l *core.Locker) do {
		return func(ctx context.Context, name string) error { return l.Do(ctx, name, nothing) }
	}
	compare("memory-pair-1", 1, 1, 300*time.Millisecond, doOld(oldL), doNew(newL))
	compare("memory-one-name-64", 64, 1, 300*time.Millisecond, doOld(oldL), doNew(newL))

	addr := servers.Redis(t).Addr()
	client := func() *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	oldR, err := old.New(redislock.New(client(), redislock.WithPrefix("old:")))
	if err != nil {
		t.Fatal(err)
	}
	newR, err := core.New(redislock.New(client(), redislock.WithPrefix("new:")).Next())
	if err != nil {
		t.Fatal(err)
	}
	compare("redis-pair-1", 1, 1, 400*time.Millisecond, doOld(oldR), doNew(newR))
	compare("redis-pair-64-names-64", 64, 64, 400*time.Millisecond, doOld(oldR), doNew(newR))
	compare("redis-one-name-64", 64, 1, 400*time.Millisecond, doOld(oldR), doNew(newR))
	for _, c := range []func(context.Context) error{oldL.Close, newL.Close, oldR.Close, newR.Close} {
		if err := c(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
