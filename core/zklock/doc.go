// Package zklock is the backend on ZooKeeper, 3.5 or later, with go-zookeeper/zk: a connection
// that the program has made.
//
//	var session zklock.Session
//	conn, _, err := zk.Connect(servers, 25*time.Second, zk.WithDialer(session.Dial))
//	…
//	locks, err := core.New(zklock.New(conn, &session))
//
// The connection's event channel need not be read for the Store's sake.
//
// It follows the recipe for shared locks of ZooKeeper's documentation. Who wants a name creates
// an ephemeral, sequential znode below the name's own; whoever's is the first has the name; and
// each of the others watches the one before it, so that a release wakes up one waiter. Those
// who share a name have it together as soon as no writer's znode is before theirs, and watch the
// last of those. The parents are containers, which the server deletes when they have been empty
// for a while.
//
//	/holdfast/order:42/write-8d777f385d3dfec8815d20f7496026dc-0000000007
//	/holdfast/order:42/read-4bf5122f344554c53bde2ebb8cd2b7e3-0000000008
//
// The number is the server's. The rest of the name is a digest of the claim's place in line,
// by which a znode is found again whose creation was not answered. The data is a digest of
// the owner's token, its TTL and its label. Tokens are not stored. Locks of other software
// below the same path, such as Curator's, are respected as far as their numbers go.
//
// # How long a lease lasts
//
// The server deletes a session's znodes when it has not heard from its client for the
// session's time-out; the client's pings see to that, whatever the lease does. So a lease
// ends in one of three ways:
//
//   - It is released: the znode is deleted. If that fails, because there is no connection,
//     it is tried again for as long as the session lives.
//   - The process dies or is cut off: the znode goes with the session. So that it does not go
//     while the lease is still trusted, a lease lasts two fifths of the session's time-out,
//     if its TTL is not shorter anyway. So give a session two and a half times the TTL. What
//     a dead holder keeps others waiting for is the session's time-out then, not the TTL.
//     TTLs below 2 s are refused.
//   - It is not renewed for a TTL, although the process is alive and connected: the Store
//     that made the znode deletes it. It does so by its own clock, from the last renewal on,
//     which is after the lease has ended.
//
// Not all of it, because the leader of an ensemble hears of sessions through the other servers,
// and with some delay. A renewal is a transaction, though it changes nothing: a server that has
// been cut off from the others goes on answering reads.
//
// While the client is disconnected nothing is granted and nothing is confirmed; leases that
// were granted stand until their time ends, and are renewed if the client is back by then.
// When the server has given the session up they are lost, and calls go on with the client's
// next session. A call waits for a session as long as its context allows.
//
// # What is promised
//
//	one owner at a time      yes, also when a leader fails: what was answered is with a majority
//	a dead owner's name      free after the session's time-out
//	fences                   yes: the czxid of the owner's znode. They grow as long as the data
//	                         is that of one ensemble; one restored from a backup begins again
//	order of waiters         first come, first served, between processes too
//	shared holders           yes; a writer that waits lets no later reader in
//	dedup markers            no: ZooKeeper has no expiry that is on by default
//
// An acquire that meets nobody costs one write, acknowledged by a majority, and three reads,
// and two writes more for a name that was not in use for a while; one that is refused costs
// two reads, of a server that may be behind the others. A renewal costs one write for all the
// leases that are due, a release one. A waiter costs one write to stand in line, one to be
// granted the name, and one or two reads in each [driver.Recheck].
//
// It is tested with ZooKeeper 3.8, standalone.
package zklock
