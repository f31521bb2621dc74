package driver

import (
	"context"
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

	// Evict frees a name that is held with this fence, in one step of compare and delete, and
	// has the next in line told: nil, [ErrNotOwner] if nobody holds it, a *[Held] if it is held
	// with another fence or with one that is not known, or an unknown outcome. Fence is never 0.
	Evict(ctx context.Context, name string, fence uint64) error
}

// LeaseInfo is what is known of a name.
type LeaseInfo struct {
	Name string
	Held bool

	// Of who holds it:

	Label string // "" if it left none or is foreign
	// Fence is that of the turn under way when the backend last heard of it; 0 if it is not
	// known, as where the backend learns it by the first renewal.
	Fence     uint64
	Remaining time.Duration // until its TTL ends, unless it is renewed; 0 if it has none
	Foreign   bool          // it is no client of this library

	Line []WaiterInfo // those who wait, first come, first served; at most [MaxLine]
}

// MaxLine is how many of a line are told.
const MaxLine = 100

// WaiterInfo is one who stands in line, which is a process with all its goroutines.
type WaiterInfo struct {
	Waited time.Duration // since it came, by the backend's clock
	Alive  bool          // it was heard of lately; otherwise it is dropped when its turn comes
}
