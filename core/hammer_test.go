package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// Many goroutines of several Lockers want few names, in all ways, and some of them leave. At the end nothing may be left.
func TestManyCallersOfFewNamesExcludeEachOther(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		lockers := []*core.Locker{b.locks, b.other(), b.locker(b.store)} // the last one asks on its callers' goroutines
		var inside [3]atomic.Bool
		var fences [3]atomic.Uint64
		var all sync.WaitGroup
		for i := range 48 {
			l, rng := lockers[i%len(lockers)], rand.New(rand.NewPCG(uint64(i), 1))
			upTo := func(n int) time.Duration { return time.Duration(rng.IntN(n)) * time.Microsecond }
			all.Go(func() {
				for range 200 {
					n := rng.IntN(len(inside))
					name := fmt.Sprint("name", n)
					work := func(ctx context.Context) error {
						fence, _ := core.FenceFor(ctx, name)
						if inside[n].Swap(true) || fences[n].Swap(fence) >= fence {
							b.Errorf("%s: two holders, or fence %d again", name, fence)
						}
						time.Sleep(upTo(100))
						inside[n].Store(false)
						return nil
					}
					ctx, cancel := context.WithCancel(b.Context())
					if rng.IntN(4) == 0 {
						ctx, cancel = context.WithTimeout(b.Context(), upTo(3000))
					}
					var opts []core.Option
					if rng.IntN(2) == 0 {
						opts = append(opts, core.WithWait(upTo(2000).Truncate(time.Millisecond)))
					}
					if err := l.Do(ctx, name, work, opts...); err != nil && !errors.Is(err, core.ErrHeld) && ctx.Err() == nil {
						b.Errorf("%s: %v", name, err)
					}
					cancel()
				}
			})
		}
		all.Wait()
		for _, l := range lockers {
			b.ok(l.Close(b.Context()))
		}
	})
}

func locker(t testing.TB, d driver.Driver, opts ...core.NewOption) *core.Locker {
	t.Helper()
	l, err := core.New(d, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return l
}
