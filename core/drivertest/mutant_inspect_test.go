package drivertest

import (
	"context"
	"iter"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// shown is info with the mutant's fault.
func (m *mutant) shown(info inspect.LeaseInfo) inspect.LeaseInfo {
	if m.shows != nil {
		m.shows(&info)
	}
	return info
}

func (m *mutant) Inspect(ctx context.Context, name string) (inspect.LeaseInfo, error) {
	info, err := m.store.Inspect(ctx, name)
	return m.shown(info), err
}

func (m *mutant) Leases(ctx context.Context, prefix string) iter.Seq2[inspect.LeaseInfo, error] {
	return func(yield func(inspect.LeaseInfo, error) bool) {
		for info, err := range m.store.Leases(ctx, prefix) {
			if !yield(m.shown(info), err) {
				return
			}
		}
	}
}

func (m *mutant) Evict(ctx context.Context, name, handle string) error {
	if m.evict != nil {
		return m.evict(m, ctx, name, handle)
	}
	return m.store.Evict(ctx, name, handle)
}

func (m *mutant) Markers(ctx context.Context, prefix string) iter.Seq2[inspect.MarkerInfo, error] {
	return m.store.Markers(ctx, prefix)
}

func (m *mutant) Unmark(ctx context.Context, name, scope string) error {
	if m.unmark != nil {
		return m.unmark(m, ctx, name, scope)
	}
	return m.store.Unmark(ctx, name, scope)
}

// inspectMutants are the faults in what a backend shows, and in how it obeys.
var inspectMutants = map[string]faulty{
	"every holder has the same handle": {mutant{shows: func(info *inspect.LeaseInfo) {
		if info.Handle != "" {
			info.Handle = another
		}
		for i := range info.Holders {
			info.Holders[i].Handle = another
		}
	}}, "AHandleStandsForAHolderFromTheGrantOn EachOfThoseWhoShareIsTakenTheNameFromByItself TheKindOfAHoldIsShown"},
	"whoever has the name is evicted": {mutant{evict: func(m *mutant, ctx context.Context, name, handle string) error {
		if info, err := m.store.Inspect(ctx, name); err == nil && info.Held {
			m.store.Lose(name)
			return nil
		}
		return m.store.Evict(ctx, name, handle)
	}}, "AHandleStandsForAHolderFromTheGrantOn EachOfThoseWhoShareIsTakenTheNameFromByItself TheKindOfAHoldIsShown"},
	"it is blind for those who hold together": {
		mutant{shows: func(info *inspect.LeaseInfo) { info.Holders = nil }},
		"EachOfThoseWhoShareIsTakenTheNameFromByItself HeldNamesAreListedByTheirPrefix",
	},
	"every hold is exclusive": {mutant{shows: func(info *inspect.LeaseInfo) {
		info.Kind = inspect.HoldExclusive
	}}, "TheKindOfAHoldIsShown"},
	"labels are not shown": {mutant{shows: func(info *inspect.LeaseInfo) { info.Label = "" }}, "HeldNamesAreListedByTheirPrefix TheKindOfAHoldIsShown"},
	"the queue is shown from its end": {mutant{shows: func(info *inspect.LeaseInfo) {
		if len(info.Line) == 2 {
			info.Line[0], info.Line[1] = info.Line[1], info.Line[0]
		}
	}}, "TheQueueIsShown"},
	"an eviction does nothing": {
		mutant{evict: func(*mutant, context.Context, string, string) error { return nil }},
		"AnEvictionServesTheFirstOfTheQueue AHandleStandsForAHolderFromTheGrantOn",
	},
	"a removed marker stays": {
		mutant{unmark: func(*mutant, context.Context, string, string) error { return nil }},
		"MarkersAreListedAndRemoved",
	},
}
