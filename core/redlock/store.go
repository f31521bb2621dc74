package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
	"github.com/holdfast-go/holdfast/core/internal/sweep"
)

// minNodes is where a quorum begins to outlive a node: that of one node is the node, that of
// two is both.
const minNodes = 3

// store is a [Store] on the contract of its nodes.
type store struct {
	nodes  []driver.Driver
	quorum int
	fenced bool // WithFence

	errands errands
	late    []*sweep.Sweeper // for each node: what it may grant when nobody waits any more
	mu      sync.Mutex       // protects the fields below; taken before a ballot's
	ballots map[tenure]*ballot
	pruneAt int // the number of ballots at which those that are over are thrown out

	places        map[spot]*standing // of this process, in the queues of the nodes
	prunePlacesAt int                // as pruneAt
}

var (
	_ driver.Validator  = (*store)(nil)
	_ driver.IdleCloser = (*store)(nil)
	_ driver.Inspector  = (*store)(nil)
	_ driver.Queuer     = queueing{}
)

func newStore(nodes []driver.Driver, opts []Option) *store {
	s := &store{
		nodes:   nodes,
		quorum:  len(nodes)/2 + 1,
		ballots: make(map[tenure]*ballot),
		pruneAt: minPrune,
		places:  make(map[spot]*standing),

		prunePlacesAt: minPrune,
	}
	for range nodes {
		s.late = append(s.late, sweep.New(s.errands.spawn))
	}
	for _, o := range opts {
		o.apply(s)
	}
	return s
}

// Capabilities implements driver.Driver. TTLs and names are limited to what all nodes support. The
// Store is punctual whatever the nodes are: no call waits for a node after its own time is over.
func (s *store) Capabilities() driver.Capabilities {
	can := driver.Capabilities{Backend: "redlock", Punctual: true, Fence: s.fenced}
	for _, node := range s.nodes {
		if node == nil { // Validate says so
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

// Validate implements driver.Validator.
func (s *store) Validate() error {
	if len(s.nodes) < minNodes {
		return fmt.Errorf("redlock: %d nodes: fewer than %d outlive none, use the backend itself", len(s.nodes), minNodes)
	}
	seen := make(map[driver.Driver]int)
	for i, node := range s.nodes {
		v := reflect.ValueOf(node)
		if node == nil || v.Kind() == reflect.Pointer && v.IsNil() {
			return fmt.Errorf("redlock: node %d is nil", i)
		}
		if v.Comparable() {
			if first, twice := seen[node]; twice {
				return fmt.Errorf("redlock: nodes %d and %d are the same", first, i)
			}
			seen[node] = i
		}
		if can := node.Capabilities(); s.fenced && (!can.Fence || !can.Floor) {
			return fmt.Errorf("redlock: node %d (%s): WithFence needs nodes that count fences from a floor on, such as redislock.New", i, can.Backend)
		}
		if own, ok := node.(driver.Validator); ok {
			if err := own.Validate(); err != nil {
				return fmt.Errorf("redlock: node %d: %w", i, err)
			}
		}
	}
	return nil
}

// CloseIdle implements driver.IdleCloser. It waits for calls that are under way on the nodes, for at
// most three seconds, and closes what the nodes keep alive. After that, a late grant of a node is
// given back for another quarter of a second only. Later ones end with their TTL.
func (s *store) CloseIdle(ctx context.Context) error {
	for _, late := range s.late {
		late.Close()
	}
	errs := []error{s.errands.settle(ctx, maxCleanUp+time.Second)}
	for _, node := range s.nodes {
		if idle, ok := node.(driver.IdleCloser); ok {
			errs = append(errs, idle.CloseIdle(ctx))
		}
	}
	return errors.Join(errs...)
}

// maxBound is core's on one attempt. The node that is slowest gets no more than three quarters
// of it, or of what is left of a call's time: an answer without it has to be in time.
const maxBound = 2 * time.Second

func patience(ctx context.Context) time.Duration {
	left := maxBound
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline))
	}
	return left * 3 / 4
}

// fan runs f for every node at once. The context it gets is not the caller's, which it
// outlives, so that a call that has its quorum need not wait for those who are slower; stop
// ends it.
func (s *store) fan(ctx context.Context, f func(ctx context.Context, i int)) (stop context.CancelFunc) {
	ctx, stop = context.WithTimeout(context.Background(), patience(ctx)) //nolint:contextcheck // see above
	var all sync.WaitGroup
	all.Add(len(s.nodes))
	for i := range s.nodes {
		s.errands.spawn(func() {
			f(ctx, i)
			all.Done()
			if i == 0 {
				all.Wait()
				stop()
			}
		})
	}
	return stop
}
