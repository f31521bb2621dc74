package redislock_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// A third of the leases are on a master that stands still, and that no replica replaces. They are
// lost; no other one is, though many a command carries both.
func TestAStoppedMasterCostsOnlyTheLeasesThatAreOnIt(t *testing.T) {
	t.Parallel()
	const n, together = 20_000, 64
	c := servers.Cluster(t, "--cluster-node-timeout", "120000") // nobody notices
	rdb := dialCluster(t, c, true)
	j := &journal{}
	locks, err := core.New(redislock.New(rdb), core.WithTTL(10*time.Second), core.WithLogger(slog.New(slog.NewTextHandler(j, nil))))
	ok(t, err)
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = locks.Close(ctx) // leaves the leases to their TTL
	}()
	leases := make([]*core.Lease, n)
	var wg sync.WaitGroup
	for from := range together {
		wg.Go(func() {
			for i := from; i < n; i += together {
				x, err := locks.TryAcquire(t.Context(), fmt.Sprint("name-", i))
				if err != nil {
					t.Error(err)
					return
				}
				leases[i] = x
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	stopped := c.Owner(keySlot(t, c, "holdfast:name-0"))
	var good, silent []*core.Lease
	for _, x := range leases {
		master, err := rdb.MasterForKey(t.Context(), "holdfast:"+x.Name())
		ok(t, err)
		if master.Options().Addr == stopped.Addr() {
			silent = append(silent, x)
		} else {
			good = append(good, x)
		}
	}
	stopped.Pause()
	defer stopped.Resume()
	for _, x := range silent {
		<-x.Context().Done()
	}
	lost := 0
	for _, x := range good {
		if x.Err() != nil {
			lost++
		}
	}
	if lost > 0 || len(silent) < n/4 || len(good) < n/2 {
		t.Errorf("%d of %d leases on the other masters were lost, and %d are on the one that stands still", lost, len(good), len(silent))
	}
	if got := j.unavailable(); len(got) != 1 || got[0] != "it did not answer in time" {
		t.Errorf("logged %q", got)
	}
}
