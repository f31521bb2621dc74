// Package core gives out leases of names: only one holder at a time, on every machine that
// uses the same lock service.
//
//	locks, err := core.New(redislock.New(rdb))
//
//	err = locks.Do(ctx, "order:42", func(ctx context.Context) error {
//		return pay(ctx) // ctx ends with the caller, or the moment the lease is lost
//	})
//
// The doors, packages httpmw, echomw, grpcmw and taskmw, do the same around a route, a
// method and a task, and derive the name from the request. Backends are in the packages
// below this one: memlock for one process, redislock for Redis, and others for what is there
// already.
//
// # The model
//
// A backend grants a name to a token for a TTL: that is a tenure. A [Lease] is one
// holder's turn of it. While the work runs, a watchdog renews the tenure. Work that dies
// with its process frees the name within one TTL, and nobody has to guess how long the
// work may take.
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
//	       │ Complete         MaxHold │       │
//	       │                          │       │
//	       │    ┌─────────────────────▼──┐    │
//	       │    │ told to stop: context  │    │
//	       │    │ ended, not renewed     ├────┤ trust ran out
//	       │    └──┬─────────────────────┘    │
//	┌──────▼───────▼──┐              ┌────────▼────────┐
//	│ ending: one     │              │ lost: context   │
//	│ owner-checked   │              │ ended, nothing  │
//	│ release         │              │ is sent         │
//	└──────┬──────────┘              └─────────────────┘
//	       │
//	   released (or unconfirmed: free within one TTL)
//
// # What time means here
//
// The clock of a lease starts before the request for it is written, not when the answer
// arrives, and stops a little before the backend's does:
//
//	validUntil = t0 + TTL − TTL/100 − 2 ms
//
// The same holds for each renewal. The lease's context ends at validUntil by the process's
// own clocks, whatever the network does; that happens on a timer that does no I/O and runs
// no user code. The monotonic clock, corrected by the time the machine was suspended, and
// the wall clock are both looked at, and the one that says more counts. Only relative times
// go to the backend. An answer that arrives after validUntil is not believed, and a lost
// lease never comes back: whoever wants the name again gets a new token and a larger fence.
//
// The watchdog renews every third of the TTL, many leases in one command. One attempt may
// take a fifth of the TTL, and 2 s at most; failures are retried until validUntil. "Not the
// owner" ends the lease at once.
//
// Acquire retries in the same way, and one attempt of it is bounded by a third of the TTL
// and 2 s. A reply that was lost is asked for again with the same token, so that nobody
// takes his own lock for somebody else's. What a call leaves behind when it gives up is
// deleted in the background, or dies with its TTL.
//
// # Waiting
//
// Whoever waits for a name is served in the order of arrival. The goroutines of one process
// stand in memory, and only the first of them asks the backend, where the processes stand in
// line: a thousand of them cost it two commands a second. A release gives the name to the next
// goroutine of the same process without a command, as a turn of the same tenure with a fence
// of its own, for 5 ms or 32 turns; then it is the next process's. A process that stops or dies
// in line is passed over after three times the re-check, which is a third of the TTL and 1 s at
// most; that is also what a lost notification costs. Backends that cannot line up are polled,
// from every 25 ms to every second.
//
// # Kinds of holding
//
// [WithShared] is the read side of a read-write lock, [WithLimit] a semaphore, [WithMinHold]
// keeps a name taken after an early release, [Locker.AcquireAll] takes several names as one
// lease, and [Locker.Campaign] keeps one leader running among many processes. What a backend
// lacks is refused at once with [ErrInvalid].
//
// # What is promised
//
// As long as the backend keeps its data, and clocks run at rates within one percent of each
// other, no two leases of a name are trusted at the same time, but for those that are
// [Lease.Degraded]. That is no promise about
// effects: a process can be paused between its last look at the context and its write. Only
// a resource that checks the fence, [Lease.Fence], refuses the late write. See
// docs/guarantees.md for the whole list, and for what breaks it.
//
// # When something goes wrong
//
// Four answers are never mixed up. [ErrHeld]: someone else has it; try later.
// [ErrUnavailable]: the backend could not answer; nothing ran, unless [OnUnavailable] lets it go
// on, exclusive in this process only. [ErrLost]: we had it, and
// the work was told to stop through its context. [ErrDuplicate]: a dedup marker says that the
// work is finished. Code that cannot be stopped should ask [Lease.Err] or [Lease.Check]
// before what matters.
package core
