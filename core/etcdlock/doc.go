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
//	holdfast/order:42                  the lock: a digest of its owner's token, TTL, label
//	holdfast/order:42\x00line/<digest> a place in the queue
//	holdfast/order:42\x00done/<scope>  a dedup marker, which ends with its window: its label
//
// Tokens are not stored. A value of any other form is foreign: it is never overwritten, and is
// respected until it is deleted.
//
// Leases last whole seconds, at least two with etcd's default election time-out. Shorter TTLs are
// refused. Others are rounded up, so that etcd keeps a lease at least as long as it is trusted. etcd
// deletes an expired lease within about a second. After a change of leader it gives every lease its
// full time again, so a dead owner's name stays taken longer by that time.
//
// # What is promised
//
//	one owner at a time      yes, also when a leader fails: a majority has what was answered
//	a dead owner's name      free after its TTL and about a second; later after a change of leader
//	fences                   yes: the revision that created the lock. They grow as long as the
//	                         data is that of one cluster; one restored from a snapshot begins
//	                         again where that was taken, unless its revision is raised
//	order of waiters         first come, first served, between processes too
//	dedup markers            yes, as durable as etcd's data
//
// An acquire of a free name costs one read and two writes. An acquire that is refused costs a read. A
// release costs a read and a write; one that leaves a marker costs two more writes. A renewal costs
// one read for up to 128 leases, and a keep-alive for each of them, which is not a write. A waiter
// costs two writes to join the queue, and two reads, a keep-alive and a watch in each
// [driver.Recheck].
//
// A dedicated user needs only a role with readwrite on the prefix:
//
//	etcdctl role grant-permission locks --prefix=true readwrite holdfast/
//
// It is tested with etcd 3.4, with one member, and with three members while their leader is killed.
package etcdlock
