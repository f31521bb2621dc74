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
	"github.com/holdfast-go/holdfast/core/memlock"
)

// Many goroutines of several Lockers want few names, in all ways, with faults of the service and callers that leave. At the end
// nothing may be left.
func TestManyCallersOfFewNamesExcludeEachOther(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	var lockers []*core.Locker
	for range 3 {
		l, err := core.New(store, core.WithTTL(300*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		lockers = append(lockers, l)
	}
	var inside [3]atomic.Pointer[core.Lease]
	var fences [3]atomic.Uint64
	var did, refused atomic.Int64
	stop := time.Now().Add(2 * time.Second)
	var all sync.WaitGroup
	for i := range 48 {
		l := lockers[i%len(lockers)]
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for time.Now().Before(stop) {
				n := rng.IntN(len(inside))
				name := fmt.Sprint("name", n)
				ctx, cancel := context.WithCancel(t.Context())
				if rng.IntN(4) == 0 {
					ctx, cancel = context.WithTimeout(t.Context(), time.Duration(rng.IntN(3000))*time.Microsecond)
				}
				work := func(ctx context.Context) error {
					x, _ := core.FromContext(ctx)
					if y := inside[n].Swap(x); y != nil && y.Err() == nil && x.Err() == nil { // a goroutine can stall for a TTL
						t.Errorf("%s has two holders", name)
					}
					defer inside[n].CompareAndSwap(x, nil)
					if before := fences[n].Swap(x.Fence()); before >= x.Fence() && x.Err() == nil { // so a stalled one comes late
						t.Errorf("%s: fence %d after %d", name, x.Fence(), before)
					}
					if rng.IntN(8) == 0 {
						time.Sleep(time.Duration(rng.IntN(500)) * time.Microsecond)
					}
					did.Add(1)
					return nil
				}
				var err error
				switch rng.IntN(4) {
				case 0:
					var x *core.Lease
					if x, err = l.TryAcquire(ctx, name); err == nil {
						_ = work(x.Context())
						err = x.Release(ctx)
					}
				case 1:
					err = l.Do(ctx, name, work, core.WithWait(time.Duration(rng.IntN(2000))*time.Microsecond))
				default:
					err = l.Do(ctx, name, work)
				}
				cancel()
				switch {
				case err == nil:
				case errors.Is(err, core.ErrHeld), ctx.Err() != nil:
					refused.Add(1)
				default:
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d done, %d refused", did.Load(), refused.Load())
	for _, l := range lockers {
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
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
