// Package inspect is what a backend tells of names: who has them, and who waits. Package operate asks for it.
package inspect

import (
	"context"
	"iter"
	"time"
)

// Inspector is implemented by backends that can tell who holds what, and who waits.
//
// Any number of goroutines may call all methods at the same time. They may block on the network,
// and return once ctx has ended. Nobody retries them: their errors go to the caller. Only Evict
// changes anything. No method returns a token or a place.
type Inspector interface {
	// Inspect says who has one name, and who is in its queue.
	Inspect(ctx context.Context, name string) (LeaseInfo, error)

	// Leases does the same for all held names that begin with prefix, in no order. A name that
	// comes or goes meanwhile may be missing, and a name may come twice. It reads in small steps,
	// so that the server can do its other work. After an error nothing else comes.
	Leases(ctx context.Context, prefix string) iter.Seq2[LeaseInfo, error]

	// Evict takes a name from the holder with this handle, and has the first place in the queue told.
	// Compare and delete are one step. A name that is kept comes free, too. It returns nil,
	// [ErrNotOwner] if nobody holds the name, a *[Held] if only other holders do, or an unknown
	// outcome. An empty handle is nobody's.
	Evict(ctx context.Context, name, handle string) error
}

// LeaseInfo is what is known about a name.
type LeaseInfo struct {
	Name string
	Held bool

	// About the holder:

	Label string // "" if it left none or is foreign
	// Fence is the fence of the holder, or of all readers that share the name. It is 0 if there is none,
	// if each reader has its own, or if it is not known: a backend need not keep it, and of a block of
	// fences only the process that has it knows which one counts.
	Fence uint64
	// Handle stands for the holder's token from the grant on, and reveals nothing about it. It is ""
	// if the holder is foreign, and if there are several holders: each has its own, in Holders.
	Handle    string
	Remaining time.Duration // until its TTL ends, unless it is renewed; 0 if it has none
	Kind      HoldKind      // "" if nobody holds the name
	Limit     int           // how many may hold it together, if Kind is HoldLimited; the smallest one that a holder has asked for
	// HeldFor says since when, by the backend's clock: since the grant, that of the first of several
	// holders, or the release that has left the name taken. It is 0 if that is not known.
	HeldFor time.Duration
	Foreign bool // it is not a client of this library
	Kept    bool // a release has left the name taken, for a while or for a hand-off

	Holders []HolderInfo // holders that share the name; at most [MaxLine], those whose TTL ends last

	Line []WaiterInfo // the queue, first come first; at most [MaxLine]

	// Nodes is what each node of a quorum says, in their order, unless all say the same. It is empty for
	// backends that are one service.
	Nodes []NodeInfo

	// Process is what the process that asks has to do with the name itself. core fills it in.
	Process ProcessInfo
}

// NodeInfo is what one node of a quorum says of a name.
type NodeInfo struct {
	Silent    bool // it has not answered
	Held      bool
	Label     string        // as in LeaseInfo
	Handle    string        // as in LeaseInfo
	Remaining time.Duration // as in LeaseInfo
}

// HoldKind says how a name is held.
type HoldKind string

// The kinds.
const (
	HoldExclusive HoldKind = "exclusive"
	HoldShared    HoldKind = "shared"     // by readers
	HoldLimited   HoldKind = "limited"    // by holders of a semaphore
	HoldKept      HoldKind = "kept"       // by nobody: a release has left it taken for a while
	HoldHandoff   HoldKind = "handed off" // by nobody: it is left for a hand-off
	HoldForeign   HoldKind = "foreign"    // by other software
	HoldDegraded  HoldKind = "degraded"   // in one process only; the backend knows nothing of it
)

// ProcessInfo is what a process has to do with a name itself.
type ProcessInfo struct {
	Leases  []OwnLease
	Waiters []OwnWaiter // first come first
}

// OwnLease is a lease of this process.
type OwnLease struct {
	Label, Template string
	Kind            HoldKind
	Fence           uint64        // 0 if it has none
	HeldFor         time.Duration // since its turn began
	Remaining       time.Duration // for how long it is trusted, unless it is renewed
}

// OwnWaiter is a call of this process that waits.
type OwnWaiter struct {
	Label, Template string
	Waited          time.Duration
}

// MarkerInspector is implemented by backends that can tell which dedup markers stand. The rules are
// those of [Inspector].
type MarkerInspector interface {
	// Markers lists the markers of all names that begin with prefix, as Leases does.
	Markers(ctx context.Context, prefix string) iter.Seq2[MarkerInfo, error]

	// Unmark removes a marker. It returns nil, [ErrNotOwner] if there is none, or an unknown outcome.
	Unmark(ctx context.Context, name, scope string) error
}

// MarkerInfo is a dedup marker.
type MarkerInfo struct {
	Name, Scope string
	Label       string        // of the claim that left it
	Remaining   time.Duration // until its window ends
}

// HolderInfo is one of several holders of a name.
type HolderInfo struct {
	Label     string        // "" if it left none, or the backend does not keep it
	Handle    string        // as in LeaseInfo
	Remaining time.Duration // until its TTL ends, unless it is renewed
	Limit     int           // how many holders it asked for; 0 for a reader
	HeldFor   time.Duration // since its grant, by the backend's clock; 0 if that is not known
}

// MaxLine is how many places of a queue, and how many holders, a [LeaseInfo] has at most.
const MaxLine = 100

// WaiterInfo is one place in the queue: a process with all its goroutines.
type WaiterInfo struct {
	Label  string        // of its first waiter, as of the last call of Wait; "" if it left none, or the backend does not keep it
	Waited time.Duration // since it came, by the backend's clock; 0 if that is not known
	Alive  bool          // it was heard of within PlaceLife; otherwise it is dropped when its turn comes
}
