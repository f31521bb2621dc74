package redlock

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// errBlind is for nodes that are no inspect.Inspector.
var errBlind = errors.New("redlock: this kind of node cannot tell who holds what")

// looker returns the node as one that can be looked at.
func looker(node driver.Driver) (inspect.Inspector, error) {
	if i, ok := node.(inspect.Inspector); ok {
		return i, nil
	}
	return nil, errBlind
}

// Inspect implements inspect.Inspector. It asks every node. Who has a majority holds the name. LeaseInfo.Nodes
// has what each node says, unless all say the same. The queue is the one that a majority has.
func (s *Store) Inspect(ctx context.Context, name string) (inspect.LeaseInfo, error) {
	all, err := ask(ctx, s, leastWait, func(ctx context.Context, node driver.Driver) (inspect.LeaseInfo, error) {
		i, err := looker(node)
		if err != nil {
			return inspect.LeaseInfo{}, err
		}
		return i.Inspect(ctx, name)
	})
	if err != nil {
		return inspect.LeaseInfo{}, err
	}
	return s.merge(name, all), nil
}

// Leases implements inspect.Inspector. It reads the names of every node before it returns the first: a name is
// held if a majority has it. So it needs memory for all of them.
func (s *Store) Leases(ctx context.Context, prefix string) iter.Seq2[inspect.LeaseInfo, error] {
	return func(yield func(inspect.LeaseInfo, error) bool) {
		all, err := ask(ctx, s, leastWait, func(ctx context.Context, node driver.Driver) (map[string]inspect.LeaseInfo, error) {
			i, err := looker(node)
			if err != nil {
				return nil, err
			}
			held := make(map[string]inspect.LeaseInfo)
			for info, err := range i.Leases(ctx, prefix) {
				if err != nil {
					return nil, err
				}
				held[info.Name] = info
			}
			return held, nil
		})
		if err != nil {
			yield(inspect.LeaseInfo{}, err)
			return
		}
		told := make(map[string]bool)
		of := make([]answer[inspect.LeaseInfo], len(all))
		for _, a := range all {
			for name := range a.said {
				if told[name] {
					continue
				}
				told[name] = true
				for i, a := range all {
					of[i] = answer[inspect.LeaseInfo]{i, a.said[name], a.err}
				}
				if info := s.merge(name, of); info.Held && !yield(info, nil) {
					return
				}
			}
		}
	}
}

// merge makes one answer of what the nodes say of a name.
func (s *Store) merge(name string, all []answer[inspect.LeaseInfo]) inspect.LeaseInfo {
	type holder struct { // all nodes know it by the same token
		handle string
		kind   inspect.HoldKind
	}
	by := make(map[holder][]inspect.LeaseInfo)
	var lines [][]inspect.WaiterInfo
	info, nodes := inspect.LeaseInfo{Name: name}, make([]inspect.NodeInfo, len(all))
	for i, a := range all {
		nodes[i] = inspect.NodeInfo{Silent: a.err != nil, Held: a.said.Held, Label: a.said.Label, Handle: a.said.Handle, Remaining: a.said.Remaining}
		if a.err == nil {
			who := holder{a.said.Handle, a.said.Kind}
			by[who] = append(by[who], a.said)
			lines = append(lines, a.said.Line)
		}
	}
	agreed := false
	for who, saying := range by {
		agreed = agreed || len(saying) == len(all)
		if len(saying) < s.quorum || who.kind == "" {
			continue
		}
		info = s.best(saying, func(i inspect.LeaseInfo) time.Duration { return i.Remaining })
		info.HeldFor = s.best(saying, func(i inspect.LeaseInfo) time.Duration { return i.HeldFor }).HeldFor
		info.Name, info.Fence = name, 0 // the nodes' own mean nothing here
	}
	slices.SortFunc(lines, func(a, b []inspect.WaiterInfo) int { return cmp.Compare(len(b), len(a)) })
	info.Line = lines[s.quorum-1]
	if !agreed {
		info.Nodes = nodes
	}
	return info
}

// best is the answer of that node which a quorum equals or surpasses.
func (s *Store) best(saying []inspect.LeaseInfo, in func(inspect.LeaseInfo) time.Duration) inspect.LeaseInfo {
	slices.SortFunc(saying, func(a, b inspect.LeaseInfo) int { return cmp.Compare(in(b), in(a)) })
	return saying[s.quorum-1]
}

// Evict implements inspect.Inspector.
func (s *Store) Evict(ctx context.Context, name, handle string) error {
	all, err := ask(ctx, s, leastWait, func(ctx context.Context, node driver.Driver) (error, error) {
		i, err := looker(node)
		if err != nil {
			return nil, err
		}
		err = i.Evict(ctx, name, handle)
		if _, held := errors.AsType[*driver.Held](err); held || errors.Is(err, driver.ErrNotOwner) {
			return err, nil
		}
		return nil, err
	})
	if err != nil {
		return err
	}
	verdict, taken, others := driver.ErrNotOwner, false, 0
	for _, a := range all {
		switch {
		case a.err != nil:
		case a.said == nil:
			taken = true
		case !errors.Is(a.said, driver.ErrNotOwner):
			verdict = a.said
			others++
		}
	}
	if taken && others < s.quorum { // otherwise it was at a minority, and no holder
		return nil
	}
	return verdict
}
