// Package zklock is the backend on ZooKeeper, 3.5 or later. It uses go-zookeeper/zk and a connection
// that the program has made.
//
//	var session zklock.Session
//	conn, _, err := zk.Connect(servers, 25*time.Second, zk.WithDialer(session.Dial))
//	…
//	locks, err := core.New(zklock.New(conn, &session))
//
// The Store does not need anybody to read the connection's event channel.
//
// The package follows the recipe for shared locks in ZooKeeper's documentation. A caller that wants a
// name creates an ephemeral, sequential znode below the name's own znode. The owner of the first one
// has the name. Each of the others watches the one before it, so a release wakes one waiter. Shared
// holders have a name together as soon as no writer's znode is before theirs; until then they watch
// the last such znode. Limited holders, whose limit stands in the name of the znode, have a name together with those
// before them, as many as the smallest limit among them says; the first one that waits for room watches the parent.
// The parents are containers. A Store deletes that of a name which it has not used for
// a second or two, or when its Locker is closed, if it is empty. Those of processes that have died are deleted by the server.
//
//	/holdfast/order:42/write-8d777f385d3dfec8815d20f7496026dc-0000000007
//	/holdfast/order:42/read-4bf5122f344554c53bde2ebb8cd2b7e3-0000000008
//	/holdfast/order:42/limit-3-dbc1b4c900ffe48d575b5da5c6380401-0000000009
//	/holdfast/order:42/left-084fed08b978af4d7d196a7446a86b58-
//	/holdfast/order:42/taken-e52d9c508c502347344d8c07ad91cbd6-
//
// The last two are for hand-offs: a name that is left for one, by a znode that is not ephemeral, and the znode of who has taken
// it over. They have no number, and so come first. The time of a hand-off is counted by the server's clock.
//
// The server gives the number. Before it stands a digest of the claim's token. With that, the Store finds a znode again
// if its creation was not answered, and no two claims ever have the same znode, although the server's numbers
// begin again with each container. The data is the same digest, the TTL and the label; of a waiter only the label. Tokens are
// not stored. Locks of other software below the same path, such as Curator's, are respected according to their numbers.
//
// # How long a lease lasts
//
// The server deletes a session's znodes when it has not heard from the session's client for the
// session's time-out. The client's pings prevent that, whatever happens to the lease. So a lease ends
// in one of three ways:
//
//   - It is released: the znode is deleted. If that fails for lack of a connection, it is repeated as
//     long as the session lives.
//   - The process dies or is cut off: the znode disappears with the session. That must not happen
//     while the lease is still trusted. So a lease lasts two fifths of the session's time-out, or its
//     TTL if that is shorter. Give a session two and a half times the TTL. After a holder's death,
//     the name stays taken for the session's time-out then, not for the TTL. TTLs below 2 s are
//     refused.
//   - It is not renewed for a TTL, although the process is alive and connected: the Store that made
//     the znode deletes it. It uses its own clock, counted from the last renewal, so this happens
//     after the lease has ended.
//
// A lease does not last for the whole time-out, because the leader of an ensemble hears of sessions
// through the other servers, and with some delay. A renewal is a transaction, though it changes
// nothing: a server that has been cut off from the others still answers reads.
//
// While the client is disconnected (Curator says SUSPENDED), nothing is granted and nothing is confirmed. Leases that were
// granted stay valid until their time ends, and are renewed if the client is back before that. Otherwise they
// are lost as core.ReasonUnreachable. When the server has given the session up (LOST), they are lost as
// core.ReasonTaken, with the next renewal or Lease.Confirm, and calls continue with the client's next
// session. A znode of an earlier session is never taken for a grant, even if a server still shows it. A call waits for a session as long as its context allows.
//
// # What is promised
//
//	one owner at a time      yes, also when a leader fails: a majority has what was answered
//	a dead owner's name      free after the session's time-out
//	fences                   yes: the zxid of the grant, which is the mzxid of the owner's znode. They
//	                         grow as long as the data is that of one ensemble; one restored from a
//	                         backup begins again
//	order of waiters         first come, first served, between processes too
//	shared holders           yes; a waiting writer lets no later reader in
//	limited holders          yes
//	hand-off                 yes; if nobody comes for it, and the process that left it is gone, a
//	                         znode stays until somebody wants the name
//	min-hold                 no: a znode goes with the session of its owner, so it would be over if
//	                         the owner dies
//	dedup markers            no: ZooKeeper deletes nothing after a time by default, and where that is
//	                         turned on, not in the transaction that releases a name
//
// An acquire of a free name costs one write, acknowledged by a majority, and three reads. It costs
// two more writes if the name was not in use for a while, and a read and a write some time after the last use of a name. An acquire
// that is refused costs two reads, from a server that may be behind the others. A renewal costs one write for all the leases that are
// due. A release costs one write. A waiter costs a write and four reads to join the queue, two reads in each [driver.Recheck],
// and a read and a write once it is its turn. Where a name is left for a hand-off, who asks for it causes a write more, which
// asks the server for the time. Who is refused by n limited holders reads n znodes. An inspection of a name costs a read, and one
// more for each znode in its queue.
//
// It is tested with ZooKeeper 3.8: standalone, and with three servers while their leader is killed, and cut off from the
// others.
package zklock
