// Package core gives out leases of names. Only one holder has a name at a time, on all machines that
// use the same lock service.
//
//	locks, err := core.New(redislock.New(rdb))
//
//	err = locks.Do(ctx, "order:42", func(ctx context.Context) error {
//		return pay(ctx) // ctx ends with the caller's, or when the lease is lost
//	})
//
// Middleware does the same around a route, a method or a task, and makes the name from the request:
// package httpmw for net/http, with echomw and echo5mw below it, package grpcmw and package taskmw.
// Backends are in the packages below this one: memlock for one process, redislock for Redis, redlock
// for several independent servers, and others for ZooKeeper, etcd, NATS, SQL databases and memcached.
//
// # The model
//
// A backend grants a name to a token for a TTL. A [Lease] is one holder's turn of that grant. A watchdog
// renews the grant while the work runs, so nobody has to guess how long the work takes. If the process
// dies, the name comes free within one TTL.
//
//	               Acquire, TryAcquire, Do
//	                         │
//	            ┌────────────▼───────────┐  ErrHeld, ErrUnavailable, ErrDuplicate,
//	            │ trying: one token      ├─ the end of ctx: given up, and cleaned up
//	            └────────────┬───────────┘
//	                         │ granted, trusted until t0 + TTL − drift
//	            ┌────────────▼───────────┐
//	       ┌────┤ held                   ├────┐
//	       │    └──┬──▲───────────────┬──┘    │
//	       │       └──┘ renewed       │       │ trust ran out: expired, unreachable
//	       │ Release                  │       │ not the owner: taken
//	       │ Finish           MaxHold │       │
//	       │ Detach                   │       │
//	       │    ┌─────────────────────▼──┐    │
//	       │    │ told to stop: context  │    │
//	       │    │ ended, not renewed     ├────┤ trust ran out
//	       │    └──┬─────────────────────┘    │
//	┌──────▼───────▼──┐              ┌────────▼────────┐
//	│ ending: one     │              │ lost: context   │
//	│ owner-checked   │              │ ended, never    │
//	│ release         │              │ renewed again   │
//	└──────┬──────────┘              └─────────────────┘
//	       │
//	   released (or unconfirmed: free within one TTL)
//
// # Trust and time
//
// The time of a lease counts from before the request for it is written, not from when the answer
// arrives. It ends a little before the backend's own:
//
//	validUntil = t0 + TTL − TTL/100 − 2 ms
//
// The same is true of each renewal. The lease's context ends at validUntil by the clocks of this
// process, whatever the network does. A timer ends it that does no I/O and runs no user code. Two
// clocks are compared: the monotonic clock, corrected by the time that the machine was suspended, and
// the wall clock. The one by which more time has passed counts. Only relative times go to the backend.
// An answer that arrives after validUntil is not believed. A lost lease never comes back: the next
// acquire gets a new token and a larger fence.
//
// The watchdog renews every third of the TTL, many leases in one command. One attempt may take a quarter
// of the time that is left, at most 2 s. Failures are retried until validUntil. The answer "not the owner" ends the
// lease at once.
//
// Acquire retries in the same way. One attempt of it may take a third of the TTL, at most 2 s. If a
// reply is lost, the request is sent again with the same token, so a caller never takes its own lock
// for somebody else's. If a call gives up, what it may have left behind is deleted in the background,
// or ends with its TTL.
//
// # Waiting
//
// Waiters are served in the order of their arrival. The goroutines of one process wait in memory, and
// only the first of them asks the backend. There the processes have a queue. So 1,000 waiters of one
// process cost the backend about three commands a second.
//
// A release gives the name to the next goroutine of the same process without a command. That goroutine
// gets the next turn of the same grant, with a fence of its own. This goes on for 5 ms, or for 128
// turns if other processes wait. Then the next process is served. On backends that
// can, the release grants the name to it in the same step, and it begins when it is told. A process
// that stops or dies in the queue, or as it is granted the name, costs the next one three re-check
// intervals at most. A re-check interval is a third of the TTL, at most 1 s; it is also what a lost
// notification costs. Backends that have no queue are polled, every 25 ms at first and every second
// later.
//
// # Kinds of holding
//
//   - [WithShared] is the read side of a read-write lock.
//   - [WithLimit] is a semaphore.
//   - [WithMinHold] keeps a name taken after an early release.
//   - [Locker.AcquireAll] takes several names and returns a [LeaseSet]; [Locker.DoAll] runs a function
//     under them.
//   - [Locker.Campaign] keeps one leader running among many processes.
//   - [Lease.HandOff] lets work go on under the same lock in another process: a request hands the name
//     to the task that it enqueues. [Lease.Detach] and [Locker.Attach] are its two halves.
//
// If the backend cannot do what you ask for, the call fails with [ErrInvalid] before anything is sent.
//
// # What is promised
//
// No two exclusive leases of a name are trusted at the same time, except [Lease.Degraded] ones. This
// holds as long as the backend keeps its data and the rates of the clocks differ by less than one
// percent.
//
// It is no promise about effects. A process can be paused between its last look at the context and its
// write. Only a resource that checks the fence refuses such a late write: see [Lease.Fence] and
// [FenceFor]. The page docs/guarantees.md has the whole list, and what breaks each promise.
//
// # When something goes wrong
//
// Four answers are never mixed up:
//
//   - [ErrHeld]: someone else has the name. Try later.
//   - [ErrUnavailable]: the backend could not answer. Nothing ran, unless [OnUnavailable] lets the work
//     go on; it then excludes other work in this process only.
//   - [ErrLost]: the lease was held and then lost. The work was told to stop through its context.
//   - [ErrDuplicate]: a dedup marker says that the work is already done.
//
// [ErrReleased] is no loss: the lease has ended by its own release. [KindOf] gives the kind of an error
// as a value to switch on.
//
// Code that does not watch its context should call [Confirm] before a side effect. [Lease.Err] is the
// local check, without I/O.
package core
