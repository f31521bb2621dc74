package redlock

import (
	"fmt"
	"io"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/oldadapter"
	old "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Store is a lock service on a quorum of others. It implements driver.Driver; see [New].
type Store struct {
	*oldadapter.Driver
	inspect.Inspector
}

var (
	_ driver.Driver = (*Store)(nil)
	_ driver.Closer = (*Store)(nil)

	_ inspect.Inspector = (*Store)(nil)
)

// Option configures a [Store].
type Option interface{ apply(*store) }

// New returns a Store on the given nodes. The caller still configures and closes the nodes. New does
// no I/O. core.New reports what cannot work: fewer than three nodes, a node that is nil or appears
// twice, and the nodes' own complaints.
//
// The nodes have to be servers that fail independently of each other, with no replication between
// them. Two clients of the same server would count as two votes. Every process must use the same
// nodes.
func New(nodes []driver.Driver, opts ...Option) *Store {
	asked := make([]old.Driver, len(nodes))
	for i, node := range nodes {
		asked[i] = oldadapter.Node(node)
	}
	return over(newStore(asked, opts))
}

func over(s *store) *Store {
	if s.queues() {
		return &Store{Driver: oldadapter.New(queueing{s}), Inspector: s}
	}
	return &Store{Driver: oldadapter.New(s), Inspector: s}
}

// Format prints only that this is a Store, for every verb, because its contents include tokens.
func (s *Store) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "redlock.Store") // fmt has no way to return the error
}
