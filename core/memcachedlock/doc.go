// Package memcachedlock is the backend on memcached. It is for programs that have a memcached and can
// live with the fact that it is a cache. It takes a gomemcache client that the program has
// configured.
//
//	mc := memcache.New("10.0.0.1:11211")
//	locks, err := core.New(memcachedlock.New(mc))
//
// # What is promised
//
// Exclusion is best effort. Nobody else gets the name as long as the server keeps the item of a lock,
// and no longer. It loses items when it is restarted and when flush_all is called. It can also evict
// items at any time, to make room. And a server that had no processor for more than a second, as one
// that is frozen, or swapped out, takes the time before that for now until its clock ticks: what it is
// sent just then expires earlier, by as long as it stood still. The name is then free at once, and its
// holder learns of it with its next renewal. So use this backend for work that may be done twice now
// and then. To make that rarer:
//
//   - Give locks a separate memcached that is never full, or one that runs with -o temporary_ttl=61: it
//     does not evict items that have less than 61 seconds to live.
//   - After a restart, do not use the server for the longest TTL in use.
//
// docs/backends/memcached.md has what else to set, how to operate it, and what each error means.
//
// There are no fences: nothing here survives an eviction, so no number could be relied upon to grow.
// There are no dedup markers and no notifications either. Waiters poll, with a back-off from 25 ms to
// a second.
//
// # The protocol
//
// A lock is one item, prefix + name. Its value is the owner's token, the TTL and the label. Any other
// value is foreign, and never overwritten. The name is taken with add, which succeeds only if there
// is no item. All other operations read the item with gets, compare the token, and write with cas,
// which succeeds only if nobody has written to the item in between. Renewal and repetition set a new
// expiration; release sets one that is over. An item is never deleted by its key, because it could be
// somebody else's item when the command arrives.
//
// A free name costs one command to acquire, one round trip. A taken name costs two. Renewal costs one
// round trip for a whole batch and one for each of its claims. Release costs two. memcached supports
// all of this since 1.2.4; the package is tested with 1.6.18.
//
// memcached counts in whole seconds, on a clock that ticks once a second, and drops an item up to two
// seconds early by the wall clock. So the shortest TTL is two seconds. TTLs are rounded up, and the
// server is asked for two seconds more. When its holder has died, a name comes free up to three
// seconds after its TTL. memcached would read a TTL of more than 30 days as a date, so such a TTL is
// refused.
//
// # The client
//
// gomemcache does not support contexts. Its Timeout, half a second by default, limits each dial and
// each command. If a command takes longer than core wants to wait, core abandons it and cleans up
// after it. Keep Timeout well below a third of the TTL. Set MaxIdleConns, two by default, to the
// number of commands that run at the same time: every further command dials a new connection.
//
// With several servers, each name is on one of them. The client's ServerSelector picks it from the
// key, and no second server has a copy. memcache.ServerList takes the checksum of the key modulo the
// number of servers. So all processes must have the same servers in the same order. A change of the
// list moves most names: make it while no lock is held, with all processes stopped. Some selectors
// leave out servers that do not answer. Such a selector gives a held name away.
package memcachedlock
