// Package ranked is what package redlock asks of a node beyond package driver: a queue in which an entry stands where
// redlock wants it to, so that all nodes serve in one order, and fences that count on from those of other nodes.
package ranked

import (
	"context"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Claim is a claim at a node.
type Claim struct {
	driver.Claim

	// Rank says where the entry stands in the queue; 0 means at its end. An entry that is there already moves. An
	// Acquire comes before all entries with larger ranks.
	Rank uint64
	// Floor is a fence, or 0. Once the claim is granted, all fences that are minted later are larger. AcquireRanked
	// uses it.
	Floor uint64
}

// Node is a node with such a queue.
type Node interface {
	driver.Driver

	// Rank returns a rank behind all entries in the queue for a name. It is a multiple of [Step], at most 2^53, and
	// does not fall from one call to the next while the clock is not set back. It changes nothing.
	Rank(ctx context.Context, name string) (uint64, error)

	// AcquireRanked is Acquire, except for the rank and the floor.
	AcquireRanked(ctx context.Context, c Claim) (driver.Grant, error)

	// WaitRanked is Wait, except for the rank, and that it grants nothing: nil is a hint that an AcquireRanked would be
	// granted the name. The entry stays in the queue. So a waiter takes no node before a quorum of them is free.
	WaitRanked(ctx context.Context, c Claim) error
}

// Step is how far apart the ranks are that a queue gives: one millisecond of its clock.
const Step = 4096
