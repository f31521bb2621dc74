//go:build next

package core_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/contract"
	memlock "github.com/holdfast-go/holdfast/core/internal/contract/memory"
	core "github.com/holdfast-go/holdfast/core/internal/next"
)

// shards is a backend of three nodes, of which one may be silent. Like redislock in a Cluster, it
// asks each node for its claims, answers when all have answered, and without the silent one when
// seven eighths of the time are over.
type shards struct {
	*memlock.Store
	silent atomic.Bool
}

const silentShard = 1

func shardOf(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32() % 3
}

var errSilent = errors.New("the node has not answered")

func (s *shards) Renew(ctx context.Context, claims []driver.Claim) []error {
	time.Sleep(time.Millisecond)
	errs := s.Store.Renew(ctx, claims)
	if !s.silent.Load() {
		return errs
	}
	if !slices.ContainsFunc(claims, func(c driver.Claim) bool { return shardOf(c.Name) == silentShard }) {
		return errs
	}
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		time.Sleep(left - left/8)
	}
	for i, c := range claims {
		if shardOf(c.Name) == silentShard {
			errs[i] = errSilent
		}
	}
	return errs
}

// A third of the leases are on a node that says nothing any more. They are lost; no other one is.
func TestASilentNodeCostsOnlyTheLeasesThatAreOnIt(t *testing.T) {
	t.Parallel()
	const n = 20_000
	for what, c := range map[string]struct {
		ttl  time.Duration
		over time.Duration // in which the leases are acquired
		opts []core.NewOption
	}{
		"the defaults":               {ttl, 0, nil},
		"renewed late":               {ttl, 0, []core.NewOption{core.WithRenewEvery(2 * ttl / 3)}},
		"a short TTL":                {time.Second, 0, []core.NewOption{core.WithTTL(time.Second)}},
		"of all ages, renewed often": {ttl, 5 * time.Second, []core.NewOption{core.WithRenewEvery(time.Second)}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				d := &shards{Store: memlock.New()}
				locks, err := core.New(d, c.opts...)
				b.ok(err)
				leases := make([]*core.Lease, n)
				for i := range leases {
					leases[i] = b.acquire(locks, fmt.Sprint("name-", i))
					if i%100 == 99 {
						time.Sleep(c.over / (n / 100))
					}
				}
				d.silent.Store(true)
				time.Sleep(2 * c.ttl)
				var lost, kept int
				for _, x := range leases {
					switch {
					case shardOf(x.Name()) == silentShard:
						if x.Err() == nil {
							kept++
						}
					case x.Err() != nil:
						lost++
					}
				}
				if lost > 0 || kept > 0 {
					b.Errorf("%d leases lost that are on good nodes, %d kept that are on the silent one", lost, kept)
				}
				ctx, cancel := context.WithCancel(b.Context())
				cancel()
				_ = locks.Close(ctx) // leaves the leases to their TTL
				time.Sleep(ttl)      // what is under way must end in the bubble
			})
		})
	}
}
