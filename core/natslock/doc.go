// Package natslock is the backend on NATS JetStream. It uses nats.go's package jetstream and a connection that the
// program has made.
//
//	conn, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
//	…
//	js, err := jetstream.New(conn)
//	…
//	_, err = js.CreateKeyValue(ctx, natslock.Bucket("locks", 3)) // once, by whoever may
//	…
//	locks, err := core.New(natslock.New(js, "locks"))
//
// # Read this first
//
// By default, a nats-server writes to its disk every two minutes, and answers before. So servers that lose their
// power, or whose machines crash, forget locks that they have granted, and the names are granted again. Jepsen has
// shown that for NATS 2.12.1: acknowledged writes were lost, and replicas disagreed for good
// (https://jepsen.io/analyses/nats-2.12.1). The promises below need two settings:
//
//   - three replicas, with file storage: [Bucket]
//   - sync_interval: always, in the section jetstream of each server's configuration
//
// The Store logs a warning at its first use if the bucket has fewer replicas, or keeps its data in memory;
// [Store.Check] tells you at the start. No client can see sync_interval. A crash of a server's process, or kill -9,
// loses nothing that was answered.
//
// # How it works
//
// A lock is a key. A claim creates it, at the revision of which the claim has read that nobody has the name. A
// renewal writes the key again, a release deletes it, both only at the revision at which the token owned it. So a
// command that is late changes nothing. Each write has the TTL, and the server deletes a key whose TTL is over.
//
// Several holders of a name are in one value, each with its own end by the server's clock. Who joins, renews or
// leaves writes them all. The key lasts as long as the last of them. A release that leaves the name taken, for a while
// or for a hand-off, writes that into the key instead of deleting it.
//
// Dots separate the parts of a key; every byte that a key cannot have is written as "=" and two digits. A value is "v1 " and
// JSON: digests of tokens, TTLs, fences, since when, and labels.
//
//	order=3A42.lock         the lock: who has the name
//	order=3A42.queue.0      an entry in the queue, and when it came
//	order=3A42.done.pay     a dedup marker, which ends with its window
//
// An entry is written again at least every [driver.Recheck], and keeps its order. There are 512 of them for each
// name; further processes poll. Waiters hear of changes by plain messages, on subjects that begin with
// "holdfast.", and look every [driver.Recheck] in case that one was lost.
//
// Tokens are not stored. A value of any other form is foreign: it is never overwritten, and is respected until it
// is deleted.
//
// TTLs of NATS are whole seconds, at least one. Shorter TTLs are refused. Others are rounded up, so that a lock is
// kept at least as long as it is trusted. A server looks for keys whose TTL is over up to four times a second. After
// a change of leader, the new leader judges TTLs that began by its predecessor's clock: keep the servers' clocks
// together, as NATS asks anyway. core gives up a lease 1% of its TTL earlier than the server does, so for a TTL of
// 10 s, clocks may differ by 100 ms.
//
// # What is promised
//
//	one owner at a time      yes, with the settings above, while a majority of the replicas answers
//	a dead owner's name      free after its TTL, rounded up, and about a second; later while there is no leader
//	fences                   yes: the revision of the grant. They begin again if the bucket is deleted and made anew
//	order of waiters         first come, first served, between processes too
//	dedup markers            yes, as durable as the bucket
//	shared, limited          yes: up to 512 holders of a name. Each change writes them all, so tens are better
//	min-hold, hand-off       yes: in whole seconds, rounded up
//
// An acquire of a free name costs a read and a write. An acquire that is refused costs a read, and another of the
// leader if the bucket has replicas. So does one with dedup of a name that was not in use for a minute. A release
// costs a read and a write; one that leaves a marker costs two writes. A renewal costs one read for all leases, and
// a write for each name. Where a name is shared or limited, an acquire beside others, a renewal and a release also
// ask for the server's time. A waiter costs two reads and a write when it comes, a read and a write in each
// [driver.Recheck], and a read and two writes once it is its turn. docs/backends/nats.md has the permissions, and
// says how to operate it.
//
// It needs nats-server 2.11 or later. It is tested with 2.15, with one server, and with three while their leader is
// killed.
package natslock
