// Package redislock is the backend on Redis, or on anything that speaks its protocol and runs
// its scripts one after the other: a standalone server, the master behind Sentinel, or a Cluster.
// It takes a go-redis client that the program has configured. docs/backends/redis.md lists the keys, the
// permissions and the settings that matter.
//
// Scripts must be atomic: no other command may run between those of a script. A server that runs
// scripts at the same time, such as Dragonfly with disable-atomicity or Garnet without Lua
// transactions, must not be used. There, a renewal or a release can hit another owner's lock.
//
// A Store asks the server once what it is, and refuses those that it can tell: see
// [WithoutServerCheck] and docs/backends/redis.md.
//
// The lock is a plain string key, prefix + name. It is set with NX semantics and a TTL in
// milliseconds. redsync and bsm/redislock use the same shape, so a fleet can move from one
// library to the other while both run. The value is the owner's token, a magic byte and the
// label; after a renewal, also the magic byte and the fence. A value of any other form is
// foreign, and is never overwritten. Every other key of a name begins with {prefix+name}:v1: and
// so is in the lock key's Cluster slot. The fence counter belongs to a slot, not to a name.
//
// Acquire, renew and release are one script and one round trip each. The script that grants a
// name also mints its fence: one more than the last fence, or the server's clock in
// microseconds, whichever is larger. So fences keep growing even if the counter is lost.
//
// A grant is exclusive as long as the server keeps its data. A failover to a replica that has
// not received a grant can give the name to a second holder. So can a server that restarts
// without its data, for one TTL. A fence closes that gap if the resource checks it.
// [WithReplicas] makes grants wait for replicas.
//
// # Sentinel
//
// The client of redis.NewFailoverClient follows its master. While there is no master, new
// acquires wait or are unavailable. Running leases end by their own clocks, before anybody else
// gets the name, unless the new master renews them in time.
//
// If leases must survive a failover, choose a TTL of about twice the time that the failover
// takes: Sentinel's down-after-milliseconds, 30 s by default, plus the election. At least 1.5
// times is necessary, because up to a third of the TTL may have passed since the last renewal.
//
// # Cluster
//
// All keys of a name are in one slot, and so is its fence counter, which all names of the slot
// share. A renewal of an exclusive lease names only one key. A release without a dedup marker does so
// too, when the node says that only some of its keys are there; then waiters are not told, and find out
// by themselves. So both go on while their slot moves to another node. Those of shared and limited
// leases name two keys, and wait only while these are at two nodes, or at none since the lease is over.
// Other commands may have to wait, within the bound of their attempt, until the slot's keys are together
// again. Renewals for the same master share a round trip. Each other command goes to its node by itself.
//
// Waiters are told through a sharded channel in the slot of the name, {prefix+n}:v1:shard:…. A
// process needs one connection for each slot that it waits for, until 2 s after the last waiter,
// and at most 16 at a node. Waiters of further slots are in the queue as all others are, but hear
// nothing. Each of their names costs six looks within a re-check instead of one, and half a
// re-check when it goes to another process. A connection that comes free is used again within
// 5 s. Servers older than Redis 7 have no sharded channels and get plain ones.
//
// Some clusters are one endpoint for plain clients: ElastiCache Serverless, Azure Managed Redis with
// the Enterprise cluster policy, proxies. They refuse a command whose keys are in different slots. A
// Store finds that out by the first such refusal, and then uses counters and channels by slots, too.
// Commands go on to share round trips, and are merged within a slot.
//
// A client that does not reach a node looks for its replacement at once, and not only at its
// ClusterStateReloadInterval. By default, Redis serves no slot at all while one slot has no
// owner: see cluster-require-full-coverage.
package redislock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
)

// Store is a lock service on Redis. Make one with [New]. It implements driver.Driver, and any
// number of goroutines may use it.
type Store struct {
	rdb      redis.UniversalClient
	prefix   string
	replicas replicas
	punctual bool
	inquiry  *inquiry
	leaving  leaving

	layout      *layout
	subscribers *subscribers
	share       *sharing // nil if every command goes by itself

	number atomic.Uint64 // of the last look
	queued sync.Map      // tokens that were refused in a Wait, and were not granted or released since
}

var (
	_ driver.Closer = (*Store)(nil)
	_ ranked.Node   = (*Store)(nil)

	_ inspect.Inspector       = (*Store)(nil)
	_ inspect.MarkerInspector = (*Store)(nil)
)

// New returns a Store that sends its commands through rdb. The caller configures rdb and closes
// it. New does no I/O. core.New reports what cannot work: a nil client, a Ring, reading from
// replicas, client-side caching, an impossible prefix.
//
// The client's own retries do not apply to lock commands. They are sent once, and core repeats
// them under rules that are safe for locks. They respect the deadlines of their contexts,
// whatever the client's ContextTimeoutEnabled says. Turn it on in a Cluster client: that saves a
// goroutine for many commands. Hooks of a plain client do not see lock commands, because they
// would see tokens.
func New(rdb redis.UniversalClient, opts ...Option) *Store {
	s := &Store{prefix: "holdfast:", inquiry: newInquiry()}
	for _, o := range opts {
		o.apply(s)
	}
	s.rdb, s.punctual = punctual(rdb)
	s.layout = newLayout(rdb, s.prefix)
	s.subscribers = newSubscribers(s.rdb, s.layout)
	if _, ok := s.rdb.(*redis.Client); ok {
		s.share = s.newSharing()
	}
	return s
}

// Option configures a [Store].
type Option interface{ apply(*Store) }

type optionFunc func(*Store)

func (f optionFunc) apply(s *Store) { f(s) }

// WithPrefix sets the prefix of all keys. The default is "holdfast:". It may be empty, to share
// names with other lock libraries. Braces and control characters are not allowed: core.New reports
// them. The last one wins.
func WithPrefix(prefix string) Option {
	return optionFunc(func(s *Store) { s.prefix = prefix })
}

// Capabilities implements driver.Driver.
func (s *Store) Capabilities() driver.Capabilities {
	can := driver.Capabilities{Backend: "redis", Punctual: s.punctual, Err: s.validate()}
	if can.Err == nil {
		can.Location = s.location()
	}
	can.Forgets = s.share != nil // hooks of a Cluster client may keep what they get
	can.Hears, can.Queue, can.Fence, can.Block, can.Shared, can.Limit = true, true, true, true, true, true
	can.Dedup, can.Keep, can.Detach = true, true, true
	return can
}

// validate checks the client and the options.
func (s *Store) validate() error {
	for _, r := range s.prefix {
		if r == '{' || r == '}' || unicode.IsControl(r) {
			return fmt.Errorf("redislock: WithPrefix(%q): braces and control characters are not allowed", s.prefix)
		}
	}
	if err := s.replicas.validate(); err != nil {
		return err
	}
	return fits(s.rdb)
}

// Close implements driver.Closer: it ends the subscriptions. If a subscription is being dialled into a network that does
// not answer, it ends after 5 s with a plain client, and after the client's own timeouts in Cluster.
func (s *Store) Close(ctx context.Context) error { return s.subscribers.close(ctx) }
