package redlock

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// errBlind is for nodes that are no driver.Inspector.
var errBlind = errors.New("redlock: this kind of node cannot tell who holds what")

// looker returns the node as one that can be looked at.
func looker(node driver.Driver) (driver.Inspector, error) {
	if i, ok := node.(driver.Inspector); ok {
		return i, nil
	}
	return nil, errBlind
}

// Inspect implements driver.Inspector. It asks every node. Who has a majority holds the name. LeaseInfo.Nodes
// has what each node says, unless all say the same. The queue is the one that a majority has.
func (s *store) Inspect(ctx context.Context, name string) (driver.LeaseInfo, error) {
	all, err := ask(ctx, s, leastWait, func(ctx context.Context, node driver.Driver) (driver.LeaseInfo, error) {
		i, err := looker(node)
		if err != nil {
			return driver.LeaseInfo{}, err
		}
		return i.Inspect(ctx, name)
	})
	if err != nil {
		return driver.LeaseInfo{}, err
	}
	return s.merge(name, all), nil
}

// Leases implements driver.Inspector. It reads the names of every node before it returns the first: a name is
// held if a majority has it. So it needs memory for all of them.
func (s *store) Leases(ctx context.Context, prefix string) iter.Seq2[driver.LeaseInfo, error] {
	return func(yield func(driver.LeaseInfo, error) bool) {
		all, err := ask(ctx, s, leastWait, func(ctx context.Context, node driver.Driver) (map[string]driver.LeaseInfo, error) {
			i, err := looker(node)
			if err != nil {
				return nil, err
			}
			held := make(map[string]driver.LeaseInfo)
			for info, err := range i.Leases(ctx, prefix) {
				if err != nil {
					return nil, err
				}
				held[info.Name] = info
			}
			return held, nil
		})
		if err != nil {
			yield(driver.LeaseInfo{}, err)
			return
		}
		told := make(map[string]bool)
		of := make([]answer[driver.LeaseInfo], len(all))
		for _, a := range all {
			for name := range a.said {
				if told[name] {
					continue
				}
				told[name] = true
				for i, a := range all {
					of[i] = answer[driver.LeaseInfo]{i, a.said[name], a.err}
				}
				if info := s.merge(name, of); info.Held && !yield(info, nil) {
					return
				}
			}
		}
	}
}

// merge makes one answer of what the nodes say of a name.
func (s *store) merge(name string, all []answer[driver.LeaseInfo]) driver.LeaseInfo {
	type holder struct { // all nodes know it by the same token
		handle string
		kind   driver.HoldKind
	}
	by := make(map[holder][]driver.LeaseInfo)
	var lines [][]driver.WaiterInfo
	info, nodes := driver.LeaseInfo{Name: name}, make([]driver.NodeInfo, len(all))
	for i, a := range all {
		nodes[i] = driver.NodeInfo{Silent: a.err != nil, Held: a.said.Held, Label: a.said.Label, Handle: a.said.Handle, Remaining: a.said.Remaining}
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
		info = s.best(saying, func(i driver.LeaseInfo) time.Duration { return i.Remaining })
		info.HeldFor = s.best(saying, func(i driver.LeaseInfo) time.Duration { return i.HeldFor }).HeldFor
		info.Name, info.Fence = name, 0 // the nodes' own mean nothing here
	}
	slices.SortFunc(lines, func(a, b []driver.WaiterInfo) int { return cmp.Compare(len(b), len(a)) })
	info.Line = lines[s.quorum-1]
	if !agreed {
		info.Nodes = nodes
	}
	return info
}

// best is the answer of that node which a quorum equals or surpasses.
func (s *store) best(saying []driver.LeaseInfo, in func(driver.LeaseInfo) time.Duration) driver.LeaseInfo {
	slices.SortFunc(saying, func(a, b driver.LeaseInfo) int { return cmp.Compare(in(b), in(a)) })
	return saying[s.quorum-1]
}

// Evict implements driver.Inspector.
func (s *store) Evict(ctx context.Context, name, handle string) error {
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
