package driver

import "github.com/holdfast-go/holdfast/core/driver/inspect"

// What tells who holds what is the same in both contracts.
type (
	Inspector       = inspect.Inspector
	MarkerInspector = inspect.MarkerInspector
	LeaseInfo       = inspect.LeaseInfo
	HolderInfo      = inspect.HolderInfo
	WaiterInfo      = inspect.WaiterInfo
	NodeInfo        = inspect.NodeInfo
	MarkerInfo      = inspect.MarkerInfo
	HoldKind        = inspect.HoldKind
	ProcessInfo     = inspect.ProcessInfo
	OwnLease        = inspect.OwnLease
	OwnWaiter       = inspect.OwnWaiter
)

// The kinds.
const (
	HoldExclusive = inspect.HoldExclusive
	HoldShared    = inspect.HoldShared
	HoldLimited   = inspect.HoldLimited
	HoldKept      = inspect.HoldKept
	HoldHandoff   = inspect.HoldHandoff
	HoldForeign   = inspect.HoldForeign
	HoldDegraded  = inspect.HoldDegraded

	MaxLine = inspect.MaxLine
)
