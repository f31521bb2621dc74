// Package memcachedlock is the backend on memcached, for programs that have one and can live
// with what it is: a cache. It takes a gomemcache client that the program has configured.
//
//	mc := memcache.New("10.0.0.1:11211")
//	locks, err := core.New(memcachedlock.New(mc))
//
// # What is promised
//
// Exclusion is best effort. As long as the server keeps the item of a lock, and for no longer
// than that, nobody else gets the name. It forgets items when it is restarted, when flush_all
// is called, and when it evicts them to make room, at any time; the name is then free at
// once, and its holder hears of it with its next renewal. So this backend is for work that
// may, now and then, be done twice. For a better one:
//
//   - Give locks a memcached of their own that is never full, or one that runs with -M: it
//     refuses new items where others evict old ones.
//   - Leave a server that was restarted alone for the longest TTL in use.
//
// There are no fences: nothing here outlives an eviction, so no number could be relied upon
// to grow. There are no dedup markers either, and no notifications: who waits asks again,
// with back-off from 25 ms to a second.
//
// # The protocol
//
// A lock is one item, prefix + name. Its value is the owner's token, the TTL and the label;
// any other value is foreign, and never overwritten. The name is taken with add, which
// succeeds only where there is no item. Everything else is gets, a look at the token, and cas,
// which succeeds only if nobody has written to the item in between: renewal and repetition
// give it a new expiration; release gives it one that is over. An item is never deleted by
// its key, as that could be somebody else's item by the time the command arrives.
//
// A free name costs one command to acquire, one round trip; a taken one two. Renewal costs
// one round trip for all of a batch and one for each of its claims, release costs two. All
// of it is done by memcached since 1.2.4; it is tested with 1.6.18.
//
// memcached counts in whole seconds, on a clock that ticks once a second, and drops an item up
// to two seconds early by the clock on the wall. So TTLs begin at two seconds and are rounded
// up, and the server is asked for two seconds more: a name whose holder has died comes free up to
// three seconds after its TTL. A TTL of more than 30 days would be a date to memcached; it is
// refused.
//
// # The client
//
// gomemcache knows no contexts. Its Timeout, half a second unless the program says otherwise,
// bounds each dial and each command; core leaves a command alone that takes longer than it
// wants to wait, and cleans up behind it. Keep Timeout well below a third of the TTL. MaxIdleConns,
// two unless the program says otherwise, should be what runs at the same time: every further
// command dials a connection of its own.
//
// With several servers, each name lives on one of them, which the client's ServerSelector
// picks from the key: there is no copy on a second one. memcache.ServerList takes the checksum
// of the key modulo the number of servers. So all processes must have the same servers in the
// same order, and a change of the list moves most names: make it while no lock is held, with
// all processes stopped. A selector that leaves out servers that do not answer, as some
// do, gives a held name away.
package memcachedlock
