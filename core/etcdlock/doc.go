// Package etcdlock is the backend on etcd. It uses etcd's client/v3 and a client that the program has
// made.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
//	…
//	locks, err := core.New(etcdlock.New(client))
//
// A lock is a key, prefix + name, with a separate etcd lease that renewals keep alive. A transaction
// creates the key only if it does not exist and no earlier waiter is in the queue. Waiters have keys
// too, each with a separate etcd lease, in the order of their creation. Each waiter watches the key
// before its own, so a release wakes one waiter. A waiter checks its own key every [driver.Recheck].
// If the key has gone with its lease, the waiter goes to the end of the queue.
//
//	holdfast/order:42                          the lock of an only owner: a digest of its token, TTL, label
//	holdfast/order:42\x00held/shared/<digest>  one of several readers: TTL, label
//	holdfast/order:42\x00held/limited/<digest> one of a limited number of holders: limit, TTL, label
//	holdfast/order:42\x00queue/<digest>        an entry in the queue: the label of its first waiter
//	holdfast/order:42\x00done/<scope>          a dedup marker, which ends with its window: its label
//
// Holders that share a name have no lock. Each has a key with its own etcd lease, and a transaction of another kind
// holds only if there is no such key.
//
// A name that WithMinHold or a hand-off leaves taken is a lock without an owner, under a lease of its own.
//
// Tokens are not stored. A value of any other form is foreign: it is never overwritten, and is
// respected until it is deleted.
//
// Leases last whole seconds, at least two with etcd's default election time-out. Shorter TTLs are
// refused. Others are rounded up, so that etcd keeps a lease at least as long as it is trusted. etcd
// deletes an expired lease within about a second. After a change of leader it gives every lease its
// full time again, so a dead owner's name stays taken longer by that time. The time of WithMinHold is in whole
// seconds, at least two, too; each renewal of such a lease gives the name the whole of it again, in case its owner dies.
//
// # What is promised
//
//	one owner at a time      yes, also when a leader fails: a majority has what was answered; but see docs/backends/etcd.md for
//	                         a fault of etcd, by which a leader that is cut off from its own disk ends leases
//	a dead owner's name      free after its TTL and about a second; later after a change of leader
//	fences                   yes: the revision of the grant. They grow as long as the
//	                         data is that of one cluster; one restored from a snapshot begins
//	                         again where that was taken, unless its revision is raised
//	shared, limited holders  yes; each reader has a fence of its own
//	min-hold, hand-off       yes
//	order of waiters         first come, first served, between processes too
//	dedup markers            yes, as durable as etcd's data
//
// Reads and transactions of many goroutines go together in one request each, when more than four are under way. Leases
// cannot: etcd makes and ends one at a time.
//
// An acquire of a free name costs one read and two writes. An acquire that is refused costs a read. A
// release costs a read and a write; one that leaves a marker or a name taken costs two more writes. A renewal costs
// one read for up to 128 leases, and a keep-alive for each of them, which is not a write. All keep-alives of a Store go over
// one stream, which stays open until core's Close: with users and passwords, each stream costs the server an
// authentication. So does that of all watches, from the first waiter on. A look at a name with n holders reads n keys. A waiter
// costs two writes to join the queue, a watch of the one before it, and two reads and a keep-alive in each
// [driver.Recheck]. To inspect a name costs a read, and a question about each lease that keeps the lock or a holder.
//
// A dedicated user needs only a role with readwrite on the prefix:
//
//	etcdctl role grant-permission locks --prefix=true readwrite holdfast/
//
// It is tested with etcd 3.4, with one member, and with three members while their leader is killed.
package etcdlock
