// Package redlock is a backend on several others: a name belongs to who has it at more than
// half of them. It goes on working while fewer than half of them are down, and needs no
// replication between them. It is the algorithm that Redis calls Redlock [1], over any
// driver.Driver whose server drops a lock when its TTL is over; five Redis servers are the
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
// With N nodes, a quorum is q = N/2 + 1 of them: 3 of 5, and also 3 of 4, so that an even node
// more buys nothing. At no time do two tenures of a name stand, as long as
//
//   - no more than N-q nodes are down, or cannot be reached, by those who need them. With
//     more down nothing is granted; leases then end when their time is over.
//   - no node forgets what it has granted. A node that has lost its memory must stay away
//     for the longest TTL in use before it answers again: what it has forgotten is over by
//     then. This is the restart rule ("delayed restarts" in [1]). It is needed for a Redis that keeps
//     nothing on disk, and for one whose appendfsync is not always. The node can
//     be held back by whatever starts it; nothing here can tell.
//   - clocks run at the same rate, but for the allowance that core makes. The clock of a node that
//     is stepped forward has its locks expire early, all of them at once.
//
// A lease is trusted for as long as the best quorum promises: if nodes grant less than what
// was asked for, that is the q-th longest of their TTLs, counted from before the first request.
//
// The restart rule is bent without harm by one node at a time: a renewal that has its quorum
// acquires the name again at nodes that have lost it, so a tenure is at nearly all nodes
// nearly all the time, and forgetting one of them leaves a quorum. Two that forget within the time
// between two renewals, or one that does while others are down, can make two holders.
//
// # There is no fence
//
// A fence is a number that grows from one holder to the next, for the resource to refuse
// those who are late, such as one that was paused for longer than its TTL and does not know
// yet. It takes one place that puts all grants in order. Here there is none: the counters of the nodes
// differ, and two quorums may have a single node in common, so that the larger number may be
// the older one. That is the heart of the critique of Redlock [2], and it stands. What it
// asks of a process, no pause longer than the TTL between a look at the lease and its effect, core narrows and
// cannot rule out. If a write by a late holder would be a disaster, use one backend that mints
// fences, such as redislock, and have the resource check them; use this package where work
// done twice is a nuisance and no single server is to stop it.
//
// There are no dedup markers and no sessions either: names, TTLs and labels are what a quorum of
// any backends has in common. Names and TTLs are bounded by what each node can take.
//
// # How it works
//
// Every call goes to all nodes at once, and returns with the answer of the node that decides it. A
// node that is slow or dead costs nothing while a quorum of the others agrees; when they do not, it is
// waited for as long again as four times what the others took, but 100 ms at least, and never
// for more than three quarters of the call's time. What it answers later is dealt with then.
//
//   - Acquire: granted by a quorum, the name is ours. Held if any node says held and there is no
//     quorum to be had. Else nobody knows, or no node can have it. An attempt that is not granted is
//     given back at every node that may have it: at once, and again at those whose answers come later.
//   - Each attempt has a token of its own at the nodes. So a late release of one attempt cannot find
//     the next one.
//   - Renewal: a node counts if it has renewed the claim itself, for as long as was promised.
//     "Not the owner" takes so many nodes that say so that no quorum can be left; else it is
//     unknown, and core asks again. A node that has lost a claim is acquired again once the
//     renewal has its quorum, never while it has not, and never after the release; one that is
//     late and lands after that is released behind itself. If that fails too, it is gone after one TTL, and
//     alone it is no quorum.
//   - Release: to every node, again for two seconds where it fails. It is done when a quorum has freed
//     the name: then others can have it.
//
// Two processes may split the vote, so that neither gets a quorum. Each is then told that the name is
// held, though nobody holds it; pauses that are random and grow soon part those that wait.
//
// # What it costs
//
// Acquire and release are one command for each node, and one round trip to the q-th fastest;
// so is the renewal of a batch. Those who wait poll: one process for one name sends an acquire to each node every
// 25 ms at first, and every second, or every third of the TTL, in the end. So a name that another process
// releases is noticed up to a second later. Inside a process the next one in line asks at once.
//
// The names must belong to this package alone at every node, so give it a prefix of its own where
// the nodes are used otherwise too. It is tested on five redis-servers 7.0.
//
// [1] Distributed Locks with Redis, https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
//
// [2] Martin Kleppmann, How to do distributed locking, 2016,
// https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
package redlock
