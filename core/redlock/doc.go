// Package redlock is a backend on top of several other backends, the nodes. A name belongs to the
// caller that has it on more than half of the nodes. It keeps working while fewer than half of them
// are down, and needs no replication between them. It is the algorithm that Redis calls Redlock [1],
// over any driver.Driver whose server drops a lock when its TTL is over. Five Redis servers are the
// usual case.
//
//	nodes := make([]driver.Driver, 5)
//	for i := range nodes {
//		nodes[i] = redislock.New(clients[i]) // each of another server, on another machine
//	}
//	locks, err := core.New(redlock.New(nodes))
//
// # What is promised
//
// With N nodes, a quorum is q = N/2 + 1 of them: 3 of 5, and also 3 of 4. So an extra node that makes
// the number even gains nothing. At no time are two tenures of a name valid, under these conditions:
//
//   - At most N-q nodes are down or unreachable. With more nodes down nothing is granted, and leases
//     end when their time is over.
//   - No node forgets what it has granted. This is the restart rule ("delayed restarts" in [1]): a
//     node that has lost its memory must stay away for the longest TTL in use before it answers
//     again. Until then, everything that it has forgotten is over. The rule is needed for a Redis
//     that keeps nothing on disk, and for one whose appendfsync is not always. With
//     redislock.RestartRule as the OnConnect of the nodes' clients, nobody uses a server until it has
//     been up for that long.
//   - Clocks run at the same rate, except for the tolerance that core allows. If a node's clock is
//     stepped forward, its locks expire early, all of them at once.
//
// A lease is trusted for as long as the best quorum promises. If nodes grant less than what was asked
// for, that is the q-th longest of their TTLs, counted from before the first request.
//
// One node at a time may break the restart rule without harm. A renewal that has its quorum acquires
// the name again on nodes that have lost it, and a new holder, within a third of a second, on those that
// had not heard of the last release. So a grant is on nearly all nodes nearly all the time,
// and forgetting one of them leaves a quorum. Two holders are possible if two nodes forget within the
// time between two renewals, or if one does while others are down.
//
// # The fence
//
// A fence is a number that grows from one holder to the next. With it, the resource can refuse late
// holders, such as a process that was paused for longer than its TTL and does not know it yet. That
// Redlock has none is the main point of its critique [2], and it is right: without a fence, no process
// may pause for longer than the TTL between a check of the lease and its effect. core narrows that
// window and cannot close it.
//
// [WithFence] makes one. Each node mints a fence for its grant. The largest of a quorum is the lease's,
// once a quorum of nodes has promised that all their later fences are larger. That costs one more round
// trip for an acquire. The proof is in docs/decisions/014-quorum.md. It needs what exclusion
// needs. A node that comes back without its counter counts from its clock. So the clocks of the nodes
// must differ by less than the longest TTL, and the restart rule must hold.
//
// All processes must use WithFence, or none. To introduce it, stop all of them; otherwise, those without
// it take the name and show the resource no fence.
//
// There are no dedup markers and no sessions. Names, TTLs and labels are what all backends
// have in common. Names and TTLs are limited to what every node accepts.
//
// # How it works
//
// Every call goes to all nodes at once, and returns with the answer of the node that decides it. A
// slow or dead node costs nothing while a quorum of the others agrees. If they do not agree, the call
// waits for the missing nodes: four times as long as a quorum took to answer, but at least 100 ms, or
// 500 ms if some of them could not be reached, and never more than three quarters of the call's time.
// Later answers are processed in the background.
//
//   - Acquire: the name is ours when a quorum has granted it. It is held if any node says so and no
//     quorum is possible. Otherwise the outcome is unknown, or no node can have it. An attempt that
//     is not granted is given back on every node that may have it: at once, and again on nodes that
//     answer later.
//   - Each attempt has a separate token on the nodes. So a late release of one attempt cannot affect
//     the next one.
//   - Renewal: a node counts if it has renewed the claim itself, for as long as was promised. "Not
//     the owner" needs so many nodes that no quorum can be left. Otherwise the outcome is unknown,
//     and core asks again. A node that has lost a claim is acquired again after the renewal has its
//     quorum, and never after the release. So is, at once, one that has renewed it and whose reply to
//     the acquire was lost. If that acquire arrives after the release, it is released again. If that
//     fails too, it is gone after one TTL, and a single node is no quorum.
//   - Release: it goes to every node, and is repeated where it fails, often for two seconds, and then more
//     and more seldom until the TTL ends. It is done when a quorum has freed the name, because then others
//     can have it. A node counts only once nothing of the lease is under way to it any more.
//
// Two processes may split the votes, so that neither gets a quorum. Each is then told that the name
// is held, though nobody holds it. Those who wait in the queues do not. Others pause for random and
// growing times, which soon separates them. Where nothing but earlier attempts of the same process may
// be in the way, core asks again.
//
// # Looking
//
// Inspect and Leases ask every node, which must be able to tell, as Redis and memlock are. Who has a
// majority holds the name. If the nodes do not agree, LeaseInfo.Nodes has what each of them says.
// Evict takes the name from a holder at every node, and is done when a quorum has answered.
//
// # Waiting
//
// Nodes on Redis with scripts have a queue whose order can be set. A process has an
// entry in the queue of every node, with a rank that is the same at all of them. So it is first come,
// first served, and a minority that is down changes nothing. Two processes that begin to wait within
// the same moment may come in any order, and if the first one asks before most nodes have heard of
// the release, the next one may overtake it. A process that reaches no quorum leaves the queues. What
// it leaves behind where it cannot go, and a process that dies, holds others up for three re-check
// intervals at most. A waiter listens at every node, and asks for the name when a quorum has told it
// that it is the first. docs/decisions/014-quorum.md has the reasons.
//
// With other nodes, or without a quorum, waiters poll: one process sends an acquire for a name to each
// node, at first every 25 ms, in the end every second or every third of the TTL. So a waiter notices
// a release by another process up to a second late. Inside a process, the next waiter asks at once.
//
// # What it costs
//
// Acquire and release are one command for each node, and one round trip to the q-th fastest node. The
// renewal of a batch costs the same. Who begins to wait sends two commands to each node, and one more
// within each re-check interval.
//
// The names must belong to this package alone on every node. If the nodes are also used otherwise,
// set a separate prefix. The package is tested on five redis-servers 7.0.
//
// [1] Distributed Locks with Redis,
// https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
//
// [2] Martin Kleppmann, How to do distributed locking, 2016,
// https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
package redlock
