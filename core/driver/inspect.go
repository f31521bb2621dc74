package driver

import (
	"context"
	"errors"
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

	// Evict takes a name from one holder, and has the first place in the queue told. Compare and
	// delete are one step. A name that is kept comes free, too. It returns nil, [ErrNotOwner] if
	// nobody holds the name, a *[Held] if only other holders do, [ErrSeveral], or an unknown
	// outcome.
	Evict(ctx context.Context, name string, h Holder) error
}

// Holder says which holder is meant, by one of its fields: the fence of the turn under way, or the
// handle.
type Holder struct {
	Fence  uint64
	Handle string
}

// ErrSeveral means that several readers have the fence that was given to Evict. Nothing was done.
var ErrSeveral = errors.New("driver: several holders have this fence")

// LeaseInfo is what is known about a name.
type LeaseInfo struct {
	Name string
	Held bool

	// About the holder:

	Label string // "" if it left none or is foreign
	// Fence is the fence of the turn under way, or of all readers that share the name. It is 0 if
	// there is none, or it is not known: a backend may learn it only at the first renewal.
	Fence uint64
	// Handle stands for the holder's token from the grant on, and reveals nothing about it. It is ""
	// if the holder is foreign, and if there are several holders: each has its own, in Holders.
	Handle    string
	Remaining time.Duration // until its TTL ends, unless it is renewed; 0 if it has none
	Foreign   bool          // it is not a client of this library
	Kept      bool          // a release has left the name taken, for a while or for a hand-off

	Holders []HolderInfo // holders that share the name; at most [MaxLine], those whose TTL ends last

	Line []WaiterInfo // the queue, first come first; at most [MaxLine]
}

// HolderInfo is one of several holders of a name.
type HolderInfo struct {
	Handle    string        // as in LeaseInfo
	Remaining time.Duration // until its TTL ends, unless it is renewed
	Limit     int           // how many holders it asked for; 0 for a reader
}

// MaxLine is how many places of a queue, and how many holders, a [LeaseInfo] has at most.
const MaxLine = 100

// WaiterInfo is one place in the queue: a process with all its goroutines.
type WaiterInfo struct {
	Waited time.Duration // since it came, by the backend's clock
	Alive  bool          // it was heard of within PlaceLife; otherwise it is dropped when its turn comes
}
