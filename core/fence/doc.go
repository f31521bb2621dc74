// Package fence is for the side of the resource: it refuses the late write of a holder whose
// lease is over.
//
// A process can be paused at any point, for longer than its lease: by the garbage collector,
// a hypervisor, a slow disk. When it goes on it still believes that it holds the lock, and
// its write comes after those of its successor. No lock service can prevent that, and no
// look at the lease either, since the pause can come right after the look. What prevents it
// is a resource that remembers the largest fence it has seen for a key, and refuses smaller
// ones ("fencing tokens" in Martin Kleppmann, How to do distributed locking, 2016). Equal
// ones pass: a holder may write twice.
//
//	err := locks.Do(ctx, "order:42", func(ctx context.Context) error {
//		f, _ := core.FenceFor(ctx, "order:42")
//		return orders.Do(ctx, db, "order:42", f, func(tx *sql.Tx) error {
//			return pay(ctx, tx, 42) // reads and writes the order
//		})
//	})
//
// [SQL] keeps the largest fence in a table beside the data, and checks it in the transaction
// of the write. A table that has a column for it needs no guard: see [Number] and [Wrote].
// [Memory] is for a resource that one process owns. The guard for Redis is
// redislock.Guard. Where the write happens in another service, the fence travels with the
// request: see SetFence and Fence in packages httpmw, grpcmw and taskmw.
//
// # Show the fence before you read
//
// A guard can refuse a writer only once it has seen a newer one. So the new holder shows its
// fence before it reads what its write will be based on, and reads in the same transaction:
// then no older write can come in between. A holder that reads first, and shows its fence
// only when it writes, can lose an update of its predecessor.
//
// # What a fence is
//
// A positive integer, at most [Max]. Backends that mint none give 0, and every guard refuses
// that: it is no fence that is smaller than all others. A fence is trusted as its source is:
// one that a client sends can be made up, and one that is too large locks out every real
// holder. Take it from your own services only.
package fence
