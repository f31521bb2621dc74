package contend

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// What a backend may rely on core for: above all, one token is asked for one TTL while a command of it is open.
func TestTheRoomsAskAsTheContractSays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { orderly(t, seed) })
	}
}

func orderly(t *testing.T, seed uint64) {
	t.Helper()
	m, s := newMemory(), &site{t: t}
	store := memlock.New()
	var mu sync.Mutex
	faults, said := rand.New(rand.NewPCG(seed, 2)), 0
	m.faulty = func() (bool, time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		return faults.IntN(20) == 0, time.Duration(faults.IntN(3)) * time.Millisecond
	}
	var d driver.Driver = m
	if seed%2 == 0 {
		d = store
	}
	var all sync.WaitGroup
	var rooms []*Room
	for p := range 2 {
		r, end := newRoom(drivertest.Orderly(d, func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			if said++; said < 5 {
				t.Errorf("seed %d: %s", seed, fmt.Sprintf(format, args...))
			}
		}))
		defer end()
		rooms = append(rooms, r)
		for g := range 5 {
			rng := rand.New(rand.NewPCG(seed, uint64(100+10*p+g)))
			all.Go(func() {
				for i := range 12 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(50+rng.IntN(2000))*time.Millisecond)
					if i%5 == 0 && seed%2 == 0 {
						store.DropReplies(1)
					}
					_ = do(ctx, r, s, fmt.Sprint(p, g), wish(rng), Forever, func() {
						time.Sleep(time.Duration(rng.IntN(12)) * time.Millisecond)
					})
					cancel()
				}
			})
		}
	}
	all.Wait()
	settle(t, rooms...)
	time.Sleep(time.Minute)
}
