package core

import (
	"context"
	"time"
)

// EventKind says what has happened.
type EventKind uint8

// The kinds of events. For each lease that is not a re-entry there are two: EventAcquired, and then one of EventReleased,
// EventUnconfirmed and EventLost. Only a lease that Close leaves to its TTL has no second one. To count leases, count
// these and add what EventMissed says; the count is then right in the long run. In the same way EventWaiting and EventWaited
// count the calls that wait.
const (
	// EventAcquired: a lease was granted, or a name re-entered. If the caller had already gone, the lease was given
	// back at once, and EventFailed says what the caller got.
	EventAcquired EventKind = iota + 1
	// EventHeld: an acquire ended with ErrHeld.
	EventHeld
	// EventWaiting: an acquire has found the name held, and begins to wait. EventWaited follows.
	EventWaiting
	// EventLongWait: an acquire has waited for three times its TTL, and goes on waiting. Each call makes at most one. Calls that
	// wait for one another, nested in different orders, each make one. [Locker.Campaign] makes none, because it
	// is normal for it to wait.
	EventLongWait
	// EventWaited: an acquire found the name held and waited, and the wait has ended.
	EventWaited
	// EventFailed: an acquire ended with neither a lease nor ErrHeld.
	EventFailed
	// EventLimited: an acquire gave a larger [WithLimit] than a holder of the name. That is normal during a rollout
	// that changes the limit. If it lasts longer, two programs disagree.
	EventLimited
	// EventRenewed: the renewal of a lease was answered, or failed.
	EventRenewed
	// EventLost: a lease was lost while it was held. After [ReasonMaxHold] there is no event about its release.
	EventLost
	// EventReleased: a lease was given back.
	EventReleased
	// EventUnconfirmed: it is not known whether a release took effect. If it did not, the name comes free when its TTL
	// ends.
	EventUnconfirmed
	// EventMissed: in the events that were dropped, Leases more leases of a template were granted than ended, and Waiters
	// more waits began than ended. Negative numbers mean that more ended. Re-entries do not count.
	EventMissed
	// EventDropped: this observer was not told of Dropped events.
	EventDropped
	// EventDegraded: an acquire got a lease that excludes others in this process only, as [OnUnavailable] allows. There is
	// an EventAcquired, too.
	EventDegraded
)

var eventKinds = []string{
	"EventKind(0)", "acquired", "held", "waiting", "long wait", "waited", "failed", "limited", "renewed", "lost",
	"released", "unconfirmed", "missed", "dropped", "degraded",
}

// String is the kind in words, such as "acquired", for a log.
func (k EventKind) String() string { return inWords(eventKinds, int(k), "EventKind") }

// Event is what an observer is told: see [WithObserver].
//
// Observers are called one event after the other, in the order of what befell one lease; those of two leases may come in another
// order than they happened. Each observer has a goroutine of its own. It is never on the path of an acquire, a renewal or a
// release. While one blocks, up to 1024 events wait for it. Later ones are dropped, and EventMissed and EventDropped say
// so. An observer that panics, or calls [runtime.Goexit], disturbs nothing else. That event counts as dropped, so
// update counters last.
//
// Every event has the Template of [WithTemplate], which has few values, and the Name, which can have millions. Use the
// template for metrics. No event has a token.
type Event struct {
	Kind EventKind

	Template string // of WithTemplate; with a middleware, its key template
	Name     string
	// Context has the values of the context that the lease was asked for with, such as the caller's span. It
	// never ends.
	Context context.Context
	At      time.Time // when it happened; observers are told later

	Took time.Duration // of a call or a renewal: since it began, including the wait
	Held time.Duration // EventLost, EventReleased, EventUnconfirmed: how long the lease was held

	// Err is what the caller of a failed acquire got, or a wait that has ended; nil if the lease was granted. For EventUnconfirmed
	// it says why. For EventRenewed it is nil if the lease was renewed; it matches ErrLost if the name is no longer held by the
	// lease, and ErrUnavailable if there was no answer in time: then it is tried again.
	//
	// For EventDegraded it matches ErrUnavailable, and says why the lock service could not answer.
	Err    error
	Reason Reason // EventLost
	Fence  uint64 // EventAcquired

	Reentry  bool // EventAcquired: it joined a lease that its context already had
	Degraded bool // EventAcquired, EventReleased: the lease excludes others in this process only, so the service did not answer
	Marked   bool // EventReleased: a dedup marker was left
	Detached bool // EventReleased: the name stays taken, for the hand-off

	Asked, Counts int      // EventLimited: the limit of the caller, and the smallest one, which decided
	Holder        string   // EventLongWait: the label of who has the name, if the backend shows one
	Holds         []string // EventLongWait: the names that the call holds itself, by the leases of its context; outermost first
	HoldsOf       []string // EventLongWait: the templates of these
	Leases        int      // EventMissed
	Waiters       int      // EventMissed
	Dropped       int      // EventDropped

	said time.Time // EventHeld: when the lock service has said so; before the Locker was made if only this process has
}

// event begins an event. It is called only if somebody observes.
func (c *config) event(ctx context.Context, kind EventKind, name string) Event {
	return Event{Kind: kind, Template: c.template, Name: name, Context: context.WithoutCancel(ctx), At: time.Now()}
}
