package driver

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Inspector is implemented by backends that can tell who holds what, and who waits. All
// methods may be called concurrently, only read but for Evict, and return once ctx has ended.
// None of them gives out a token or a place.
type Inspector interface {
	// Inspect says who has one name, and who stands in line for it.
	Inspect(ctx context.Context, name string) (LeaseInfo, error)

	// Leases does so for all names that are held and begin with prefix, in no order. What comes
	// and goes meanwhile may be missing, and a name may come twice. It reads in small steps, so
	// that the server is not kept from its work. An error is the last that comes.
	Leases(ctx context.Context, prefix string) iter.Seq2[LeaseInfo, error]

	// Evict takes a name from one holder, in one step of compare and delete, and has the next in
	// line told: nil, [ErrNotOwner] if nobody holds it, a *[Held] if others hold it than the one
	// who is meant, [ErrSeveral], or an unknown outcome. A name that is kept comes free, too.
	Evict(ctx context.Context, name string, h Holder) error
}

// Holder says which holder is meant: by the fence of the turn under way, or by the handle. One of them
// is set.
type Holder struct {
	Fence  uint64
	Handle string
}

// ErrSeveral says of an Evict by a fence that several readers have it, and that nothing was done.
var ErrSeveral = errors.New("driver: several holders have this fence")

// LeaseInfo is what is known of a name.
type LeaseInfo struct {
	Name string
	Held bool

	// Of who holds it:

	Label string // "" if it left none or is foreign
	// Fence is that of the turn under way, or of all who share the name; 0 if there is none, or it is
	// not known, as where the backend learns it by the first renewal.
	Fence uint64
	// Handle stands for the holder's token, from the grant on, and tells nothing of it. It is "" if
	// the holder is foreign, and where there are several, who have one each.
	Handle    string
	Remaining time.Duration // until its TTL ends, unless it is renewed; 0 if it has none
	Foreign   bool          // it is no client of this library
	Kept      bool          // a release has left the name taken, for a while or for a hand-off

	Holders []HolderInfo // those who hold the name together; at most [MaxLine], of those that end last

	Line []WaiterInfo // those who wait, first come, first served; at most [MaxLine]
}

// HolderInfo is one of several who hold a name together.
type HolderInfo struct {
	Handle    string        // as that of a LeaseInfo
	Remaining time.Duration // until its TTL ends, unless it is renewed
	Limit     int           // how many holders it asked for; 0 for a reader
}

// MaxLine is how many of a line are told.
const MaxLine = 100

// WaiterInfo is one who stands in line, which is a process with all its goroutines.
type WaiterInfo struct {
	Waited time.Duration // since it came, by the backend's clock
	Alive  bool          // it was heard of lately; otherwise it is dropped when its turn comes
}
