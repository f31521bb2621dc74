package core

import (
	"context"
	"time"
)

// Observer is told what happens to leases. Nil functions are skipped.
//
// The functions are called one after the other on a goroutine of their own, never on the
// path of an acquire, a renewal or a release. While one of them blocks, up to 1024 events
// wait; those beyond are dropped, and Missed and Dropped are told. A function that panics, or
// calls [runtime.Goexit], harms nobody: its event counts as dropped, so count last, and the log
// of [WithLogger] says so once for each function.
//
// A lease that is no re-entry is told of twice, whatever becomes of it: by Acquired, and by
// one of Released, Unconfirmed and Lost. Only what a Close leaves to its TTL has no end. Who
// counts leases so, and adds what Missed says, is right in the long run.
//
// Every event has the Template of [WithTemplate], which has few values, and the Name,
// which can have millions: use the template for metrics. No event has a token. Package
// telemetry makes metrics and spans of events.
type Observer struct {
	Acquired    func(AcquiredEvent)
	Held        func(HeldEvent)
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
	Template string // of WithTemplate; the key template of a door
	Name     string
	// Context has the values of the context that the lease was asked for with, such as the
	// caller's span. It never ends.
	Context context.Context
	At      time.Time // observers are told later
}

// AcquiredEvent: a lease was granted. If its caller had gone by then, it was given back at
// once, and a FailedEvent says what the caller got.
type AcquiredEvent struct {
	Subject
	Took    time.Duration // from the call, waiting included
	Fence   uint64
	Reentry bool // it joined a lease that its context already had
	// Degraded: the lease excludes others in this process only. If it is no re-entry, a
	// DegradedEvent says why.
	Degraded bool
}

// DegradedEvent: an acquire got a lease that excludes others in this process only, as
// [OnUnavailable] allows. Acquired is told of it, too.
type DegradedEvent struct {
	Subject
	Took time.Duration
	Err  error // matches ErrUnavailable: why the backend could not answer
}

// HeldEvent: an acquire ended with ErrHeld.
type HeldEvent struct {
	Subject
	Took time.Duration
}

// WaitedEvent: an acquire found the name held and waited; it tells how that ended.
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

// LimitedEvent: an acquire gave a larger [WithLimit] than somebody who holds the name. A
// rollout that changes the limit is seen so; for longer, it is two programs that disagree.
type LimitedEvent struct {
	Subject
	Asked  int
	Counts int // the smallest limit, by which the acquire was judged
}

// RenewedEvent: one lease's renewal was answered, or was not.
type RenewedEvent struct {
	Subject
	Took time.Duration
	// Err is nil if the lease was renewed. It matches ErrLost if the name is no longer ours,
	// and ErrUnavailable if there was no answer in time: then it is tried again.
	Err error
}

// LostEvent: a lease was lost while it was held. How its release goes, after
// [ReasonMaxHold], is not told.
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

	Detached bool // the name stays taken, for whoever has the hand-off
	// Degraded: it was a lease of this process only, of which the backend was not told.
	Degraded bool
}

// UnconfirmedEvent: whether a release took effect is unknown. If it did not, the name
// comes free when its TTL ends.
type UnconfirmedEvent struct {
	Subject
	Held time.Duration
	Err  error
}

// MissedEvent: of the leases of a template, so many more were granted than ended in events
// that were dropped; fewer, if it is negative. Re-entries do not count.
type MissedEvent struct {
	Template string
	Leases   int
}
