package main

import (
	"context"
	"fmt"
	"log"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// held counts what leases under the watchdog cost while nothing happens to them.
func held(ctx context.Context, addr string) {
	const n = 10_000
	rdb := client(addr)
	defer rdb.Close()
	locks, err := core.New(redislock.New(rdb))
	if err != nil {
		log.Fatal(err)
	}
	if err := rdb.Ping(ctx).Err(); err != nil {
		log.Fatal(err)
	}
	runtime.GC()
	idle := runtime.NumGoroutine()
	leases := make([]*core.Lease, n)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < n; i += 16 {
				lease, err := locks.Acquire(ctx, fmt.Sprintf("held:%d", i))
				if err != nil {
					log.Fatal(err)
				}
				leases[i] = lease
			}
		})
	}
	wg.Wait()
	most := 0
	for range 4000 { // more than one renewal of each
		most = max(most, runtime.NumGoroutine()-idle)
		time.Sleep(time.Millisecond)
	}
	lost := 0
	for _, lease := range leases {
		if lease.Err() != nil {
			lost++
		}
		_ = lease.Release(ctx)
	}
	fmt.Printf("\n%d leases held for 4 s under the watchdog: at most %d goroutines more than idle, %d lost\n", n, most, lost)
	if err := locks.Close(ctx); err != nil {
		log.Fatal(err)
	}
}
