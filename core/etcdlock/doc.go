// Package etcdlock is the backend on etcd, with its client/v3: one that the program has
// made.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
//	…
//	locks, err := core.New(etcdlock.New(client))
//
// A lock is a key, prefix + name. It is created in a transaction that grants it only if it
// does not exist and nobody stands in line before the claim, with a lease of its own, which
// renewals keep alive. Those who wait have keys of their own, each with a lease of its own,
// in the order of their creation; each watches the one before it, so that a release wakes up
// one waiter. A waiter looks at its own key every [driver.Recheck], and goes to the end of
// the line if that has gone with its lease.
//
//	holdfast/order:42                  the lock: a digest of its owner's token, TTL, label
//	holdfast/order:42\x00line/<digest> a place in line
//	holdfast/order:42\x00done/<scope>  a dedup marker, which goes with its window: its label
//
// Tokens are not stored. A value of any other form is foreign: never overwritten, and
// respected until it is deleted.
//
// Leases last whole seconds, two at least with etcd's default election time-out: shorter TTLs
// are refused, others are rounded up, so that etcd keeps a lease no shorter than it is
// trusted. etcd deletes what is over within a second or so, and after a change of leader
// gives every lease its full time again; a dead owner's name stays taken that much longer.
//
// # What is promised
//
//	one owner at a time      yes, also when a leader fails: what was answered is with a majority
//	a dead owner's name      free after its TTL and about a second; later after a change of leader
//	fences                   yes: the revision that created the lock. They grow as long as the
//	                         data is that of one cluster; one restored from a snapshot begins
//	                         again where that was taken, unless its revision is raised
//	order of waiters         first come, first served, between processes too
//	dedup markers            yes, as durable as etcd's data
//
// An acquire that meets nobody costs one read and two writes; one that is refused costs a
// read. A release costs a read and a write; one that leaves a marker, two writes more. A
// renewal costs one read for up to 128 leases, and for each of them a keep-alive, which is no
// write. A waiter costs two writes to stand in line, and two reads, a keep-alive and a watch
// in each [driver.Recheck].
//
// A user of its own needs a role with no more than readwrite on the prefix:
//
//	etcdctl role grant-permission locks --prefix=true readwrite holdfast/
//
// It is tested with etcd 3.4, of one member; of three, while their leader is killed.
package etcdlock
