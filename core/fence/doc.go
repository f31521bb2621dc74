// Package fence is for the resource that the work changes. It refuses the late write of a holder
// whose lease has ended.
//
// A process can be paused at any point, for longer than its lease: by the garbage collector, a
// hypervisor, a slow disk. When it goes on, it still believes that it holds the lock, and its write
// arrives after those of its successor. No lock service can prevent that. Checking the lease first
// does not help either, because the pause can come right after the check. What helps is a resource
// that remembers the largest fence it has seen for a key, and refuses smaller ones ("fencing tokens"
// in Martin Kleppmann, How to do distributed locking, 2016). Equal fences pass: a holder may write
// twice.
//
//	err := locks.Do(ctx, "order:42", func(ctx context.Context) error {
//		f, err := core.FenceFor(ctx, "order:42")
//		if err != nil {
//			return err
//		}
//		return orders.Do(ctx, db, "order:42", f, func(tx *sql.Tx) error {
//			return pay(ctx, tx, 42) // reads and writes the order
//		})
//	})
//
// [SQL] keeps the largest fence in a table next to the data, and checks it in the transaction of the
// write. A table that has a column for the fence needs no guard: see [Number] and [Wrote]. [Memory]
// is for a resource that one process owns. For Redis, use redislock.Guard. If the write happens in
// another service, send the fence with the request: see [Header] and [Parse].
//
// # Show the fence before you read
//
// A guard can refuse a writer only after it has seen a newer one. So a new holder shows its fence
// first. Then it reads what its write will be based on, in the same transaction. No older write can
// then come in between. A holder that reads first, and shows its fence only when it writes, can lose
// an update of its predecessor.
//
// # What a fence is
//
// A fence is a positive integer, at most [Max]. Backends without fences give 0, and every guard
// refuses 0. You can trust a fence as much as its source. A client can make up a fence, and one that
// is too large locks out every real holder. Take fences from your own services only.
package fence
