package core

import (
	"context"
	"time"
)

// Observer is told what happens to leases. Nil functions are skipped.
//
// The functions are called one after the other on a goroutine of their own, never on the path of an
// acquire, a renewal or a release. While a function blocks, up to 1024 events wait. Later ones are
// dropped, and Missed and Dropped are told. A function that panics, or calls [runtime.Goexit],
// disturbs nothing else. Its event counts as dropped, so update counters last in a function. The
// log of [WithLogger] reports each such function once.
//
// For each lease that is not a re-entry there are two events: Acquired, and then one of Released,
// Unconfirmed and Lost. Only a lease that Close leaves to its TTL has no second event. To count
// leases, count these events and add what Missed says; the count is then right in the long run. In the
// same way Waiting and Waited count the calls that wait.
//
// WorkContext is the exception: it is called on the path, as it says.
//
// Every event has the Template of [WithTemplate], which has few values, and the Name, which can
// have millions. Use the template for metrics. No event has a token. Package telemetry makes
// metrics and spans of events.
type Observer struct {
	// WorkContext returns the context for work that is about to begin, derived from ctx, such as one with
	// a span. Do, AcquireAll and [Lease.Context] give it to the work, and later events about the lease
	// have its values. It is called on the caller's goroutine after the grant, maybe after Acquired is
	// told, and not for a re-entry. So it must be quick. If it returns nil or panics, the work has
	// ctx. A lease that nobody gets, because its caller has gone, has later events without it.
	WorkContext func(ctx context.Context, e AcquiredEvent) context.Context

	Acquired    func(AcquiredEvent)
	Held        func(HeldEvent)
	Waiting     func(WaitingEvent)
	LongWait    func(LongWaitEvent)
	Waited      func(WaitedEvent)
	Failed      func(FailedEvent)
	Limited     func(LimitedEvent)
	Degraded    func(DegradedEvent)
	Renewed     func(RenewedEvent)
	Lost        func(LostEvent)
	Released    func(ReleasedEvent)
	Unconfirmed func(UnconfirmedEvent)
	Missed      func(MissedEvent)
	Dropped     func(events int)
}

// Subject says what an event is about, and when it happened.
type Subject struct {
	Template string // of WithTemplate; with a door, its key template
	Name     string
	// Context has the values of the context that the lease was asked for with, such as the caller's
	// span. It never ends.
	Context context.Context
	At      time.Time // when it happened; observers are told later
}

// AcquiredEvent: a lease was granted. If its caller had already gone, the lease was given back at
// once, and a FailedEvent says what the caller got.
type AcquiredEvent struct {
	Subject
	Took    time.Duration // since the call, including the wait
	Fence   uint64
	Reentry bool // it joined a lease that its context already had
	// Degraded: the lease excludes others in this process only. A DegradedEvent says why, except
	// for a re-entry.
	Degraded bool
}

// DegradedEvent: an acquire got a lease that excludes others in this process only, as
// [OnUnavailable] allows. There is an AcquiredEvent too.
type DegradedEvent struct {
	Subject
	Took time.Duration
	Err  error // matches ErrUnavailable: why the backend could not answer
}

// HeldEvent: an acquire ended with ErrHeld.
type HeldEvent struct {
	Subject
	Took time.Duration

	said time.Time // when the backend itself last said so; zero if it has not
}

// WaitingEvent: an acquire has found the name held, and begins to wait. A WaitedEvent follows.
type WaitingEvent struct{ Subject }

// LongWaitEvent: an acquire has waited for three times its TTL, and goes on waiting. Each call makes at most one,
// and a call that polls the backend makes it up to a second late. Calls that wait for one another, nested in
// different orders, each make one. [Locker.Campaign] makes none, because it is normal for it to wait.
type LongWaitEvent struct {
	Subject
	Waited time.Duration // since the call
	Holder string        // the label of who has the name, if the backend shows one
	Holds  []string      // the names that the call holds itself, by the leases of its context; outermost first

	templates []string // of Holds
}

// WaitedEvent: an acquire found the name held and waited, and the wait has ended.
type WaitedEvent struct {
	Subject
	Took time.Duration
	Err  error // nil if the lease was granted
}

// FailedEvent: an acquire ended with neither a lease nor ErrHeld.
type FailedEvent struct {
	Subject
	Took time.Duration
	Err  error
}

// LimitedEvent: an acquire gave a larger [WithLimit] than a holder of the name. That is normal
// during a rollout that changes the limit. If it lasts longer, two programs disagree.
type LimitedEvent struct {
	Subject
	Asked  int
	Counts int // the smallest limit, which decided about the acquire
}

// RenewedEvent: the renewal of a lease was answered, or failed.
type RenewedEvent struct {
	Subject
	Took time.Duration
	// Err is nil if the lease was renewed. It matches ErrLost if the name is no longer held by the
	// lease. It matches ErrUnavailable if there was no answer in time; then the renewal is tried
	// again.
	Err error
}

// LostEvent: a lease was lost while it was held. After [ReasonMaxHold] there is no event about its
// release.
type LostEvent struct {
	Subject
	Reason Reason
	Held   time.Duration
}

// ReleasedEvent: a lease was given back.
type ReleasedEvent struct {
	Subject
	Held   time.Duration
	Marked bool // a dedup marker was left

	Detached bool // the name stays taken, for the hand-off
	// Degraded: the lease excluded others in this process only, so the backend was not told.
	Degraded bool
}

// UnconfirmedEvent: it is not known whether a release took effect. If it did not, the name comes
// free when its TTL ends.
type UnconfirmedEvent struct {
	Subject
	Held time.Duration
	Err  error
}

// MissedEvent: in the events that were dropped, this many more leases of a template were granted
// than ended. A negative number means that more ended. Re-entries do not count.
type MissedEvent struct {
	Template string
	Leases   int
	Waiters  int // as many more waits began than ended
}
