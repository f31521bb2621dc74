package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
	"github.com/holdfast-go/holdfast/core/internal/sweep"
	"github.com/holdfast-go/holdfast/core/internal/tasks"
)

// minNodes is where a quorum begins to outlive a node: that of one node is the node, that of
// two is both.
const minNodes = 3

// Store is a lock service on a quorum of others. It implements driver.Driver; see [New].
type Store struct {
	nodes  []driver.Driver
	ranked []ranked.Node // the same nodes, if all of them have queues whose order can be set; else nil
	quorum int
	fenced bool // WithFence

	tasks *tasks.Group
	late  []*sweep.Sweeper // for each node: what it may grant when nobody waits any more

	mu      sync.Mutex // protects the fields below; taken before a vote's
	votes   map[owner]*vote
	behind  map[string]*leftover // by name: those that are over, and may be at nodes still
	pruneAt int                  // the number of both at which those of no use any more are thrown out
}

var (
	_ driver.Closer     = (*Store)(nil)
	_ driver.Driver     = (*Store)(nil)
	_ inspect.Inspector = (*Store)(nil)
)

// Option configures a [Store].
type Option interface{ apply(*Store) }

// New returns a Store on the given nodes. The caller still configures and closes the nodes. New does
// no I/O. core.New reports what cannot work: fewer than three nodes, a node that is nil or appears
// twice, and the nodes' own complaints.
//
// The nodes have to be servers that fail independently of each other, with no replication between
// them. Two clients of the same server would count as two votes. Every process must use the same
// nodes.
func New(nodes []driver.Driver, opts ...Option) *Store {
	s := &Store{
		nodes:   nodes,
		quorum:  len(nodes)/2 + 1,
		tasks:   tasks.New(),
		votes:   make(map[owner]*vote),
		pruneAt: minPrune,
		behind:  make(map[string]*leftover),
	}
	for _, node := range nodes {
		s.late = append(s.late, sweep.New(s.tasks.Go))
		if r, ok := node.(ranked.Node); ok {
			s.ranked = append(s.ranked, r)
		}
	}
	if len(s.ranked) < len(nodes) {
		s.ranked = nil
	}
	for _, o := range opts {
		o.apply(s)
	}
	return s
}

// Capabilities implements driver.Driver. TTLs and names are limited to what all nodes support. The
// Store is punctual whatever the nodes are: no call waits for a node after its own time is over.
func (s *Store) Capabilities() driver.Capabilities {
	queue := s.ranked != nil
	can := driver.Capabilities{Backend: "redlock", Punctual: true, Hears: queue, Queue: queue, Fence: s.fenced, Err: s.validate()}
	for _, node := range s.nodes {
		if missing(node) { // Err says so
			continue
		}
		n := node.Capabilities()
		can.MinTTL = max(can.MinTTL, n.MinTTL)
		if n.MaxName > 0 {
			can.MaxName = min(cmp.Or(can.MaxName, n.MaxName), n.MaxName)
		}
	}
	return can
}

func missing(node driver.Driver) bool {
	v := reflect.ValueOf(node)
	return node == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// validate says what is wrong with the arguments of New.
func (s *Store) validate() error {
	if len(s.nodes) < minNodes {
		return fmt.Errorf("redlock: %d nodes: fewer than %d outlive none, use the backend itself", len(s.nodes), minNodes)
	}
	seen := make(map[driver.Driver]int)
	for i, node := range s.nodes {
		if missing(node) {
			return fmt.Errorf("redlock: node %d is nil", i)
		}
		if reflect.ValueOf(node).Comparable() {
			if first, twice := seen[node]; twice {
				return fmt.Errorf("redlock: nodes %d and %d are the same", first, i)
			}
			seen[node] = i
		}
		can := node.Capabilities()
		if _, counts := node.(ranked.Node); s.fenced && (!counts || !can.Fence) {
			return fmt.Errorf("redlock: node %d (%s): WithFence needs nodes that count fences from a floor on, such as redislock.New", i, can.Backend)
		}
		if can.Err != nil {
			return fmt.Errorf("redlock: node %d: %w", i, can.Err)
		}
	}
	return nil
}

// Close implements driver.Closer. It waits for calls that are under way on the nodes, for at
// most three seconds, and closes what the nodes keep alive. After that, a late grant of a node is
// given back for another quarter of a second only. Later ones end with their TTL.
func (s *Store) Close(ctx context.Context) error {
	for _, late := range s.late {
		late.Close()
	}
	bounded, stop := context.WithTimeout(ctx, maxCleanUp+time.Second)
	defer stop()
	var errs []error
	if err := s.tasks.Wait(bounded); err != nil {
		errs = append(errs, fmt.Errorf("redlock: a node has still not answered: %w", err))
	}
	for _, node := range s.nodes {
		if c, ok := node.(driver.Closer); ok {
			errs = append(errs, c.Close(ctx))
		}
	}
	return errors.Join(errs...)
}

// Format prints only that this is a Store, for every verb, because its contents include tokens.
func (s *Store) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "redlock.Store") // fmt has no way to return the error
}
