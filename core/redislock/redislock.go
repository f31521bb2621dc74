// Package redislock is the backend on Redis, or anything that speaks its protocol and runs
// its scripts: a standalone server, the master behind Sentinel, or a Cluster. It takes a
// go-redis client that the program has configured.
//
// The lock is a plain string key, prefix + name, set with NX semantics and a TTL in
// milliseconds: the shape that redsync and bsm/redislock use, so that a fleet can move from
// one to the other while both run. Its value is the owner's token, a magic byte and the
// label, and after a renewal the magic byte again and the fence; a value of any other form is foreign, and never overwritten. Every other key
// begins with {prefix+name}:v1: and so lives in the lock key's Cluster slot.
//
// Acquire, renew and release are one script each, one round trip each. A grant mints its
// fence in the script that grants it: one more than the last one, or the server's clock in
// microseconds, whichever is larger, so that fences grow on even when the counter is lost.
//
// A tenure is exclusive as long as the server keeps its data. A failover to a replica that
// has not yet heard of a grant can give the name to a second holder; so can a server that
// restarts without its data, for one TTL. A fence closes that gap where the resource
// checks it.
//
// Where scripting is forbidden, [NewTx] does with transactions what it can. A grant
// that a failover must not lose waits for replicas: [WithReplicas].
//
// # Sentinel
//
// The client of redis.NewFailoverClient follows its master. While there is none, new
// acquires are unavailable or wait, and leases are renewed at the new master if it comes up
// before they end: with Sentinel's default of 30 s until a master counts as down, that wants
// a TTL above it; else they end, by their own clocks, before anybody else gets the name.
//
// # Cluster
//
// All keys of a name are in one slot, and so is its fence counter: the names of a slot share
// one. A renewal and a release without a dedup marker name one key, and go on while its slot
// is moved to another node; other commands may have to wait until the slot's keys are
// together again, which they do within the bound of their attempt. Renewals for the same
// master share a round trip; other commands are sent one by one, each to its node.
//
// Those who wait for a name are told through a sharded channel, {prefix+n}:v1:shard:…, in the
// slot of the name, which costs a process one connection for each slot that it waits for,
// until 2 s after the last waiter, and 16 connections at a node at most. Waiters of further slots
// stand in line as all others do, but hear nothing: each name costs them six looks within a
// re-check instead of one, and half a re-check at a hand-over. A connection that comes free is
// used again within 5 s. Servers older than Redis 7 have no such channels and get plain ones.
//
// A client that does not reach a node looks for its replacement at once, and not only at its
// ClusterStateReloadInterval. By Redis's default no slot at all is served while one has no
// owner: see cluster-require-full-coverage.
package redislock

import (
	"context"
	"crypto/sha256"
	"encoding/base64"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Store is a lock service on Redis. It implements driver.Driver; see [New].
type Store struct {
	base

	fences fences
	hubs   *hubs
	share  *share // nil where every command goes by itself
}

var (
	_ driver.Driver     = (*Store)(nil)
	_ driver.Yielder    = (*Store)(nil)
	_ driver.Validator  = (*Store)(nil)
	_ driver.IdleCloser = (*Store)(nil)
	_ driver.Inspector  = (*Store)(nil)
)

// New returns a Store that sends its commands through rdb, which stays the caller's to
// configure and to close. It does no I/O. What cannot work comes out of core.New: a nil
// client, a Ring, reading from replicas, client-side caching, an impossible prefix.
//
// The client's own retries do not apply to lock commands, which are sent once and repeated
// by core under rules that are safe for locks. They heed the deadlines of their contexts
// whatever the client's ContextTimeoutEnabled says; a Cluster client should turn it on, and
// then spares a goroutine for many a command.
// Hooks that were added to a plain client do not see lock commands: they would see tokens.
func New(rdb redis.UniversalClient, opts ...Option) *Store {
	s := &Store{base: newBase(rdb, opts)}
	s.fences = newFences(rdb, s.prefix)
	s.hubs = newHubs(s.rdb, s.prefix, s.fences.bySlot)
	if _, ok := s.rdb.(*redis.Client); ok {
		s.share = &share{rdb: s.rdb, replicas: s.replicas}
	}
	return s
}

// Capabilities implements driver.Driver.
func (s *Store) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Backend: "redis", Punctual: s.punctual, Fence: true, Dedup: true,
		Block: true, Shared: true, Limit: true, Keep: true, Detach: true,
	}
}

// CloseIdle implements driver.IdleCloser: it ends the subscriptions. One that is just being
// dialled, into a network that does not answer, is over after 5 s with a plain client, and by the
// client's own time-outs in Cluster.
func (s *Store) CloseIdle(ctx context.Context) error { return s.hubs.close(ctx) }

// kept is the value of a name that a release has left taken. No token begins with the '=' or
// the '!': the scripts of acquires know it by that. Each has a handle of its own, so what stands behind
// the '=' is as long as a token, and made of the one that it is left by.
func kept(c driver.Claim) string {
	if c.Handoff != "" {
		c.Token = "!" + c.Handoff
		var n notes
		return n.value(&c)
	}
	sum := sha256.Sum256([]byte(c.Token))
	left := "=" + base64.RawURLEncoding.EncodeToString(sum[:])
	return left[:min(len(left), len(c.Token))] + magic + c.Label
}

// forHandoff is what the value begins with of a name that is left for a hand-off.
func forHandoff(c driver.Claim) string { return "!" + c.Handoff + magic }
