package inspector

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/look"
)

const (
	past      = 15 * time.Minute
	mostNames = 2000 // that a history is kept of: those that something has happened to last
	mostItems = 300  // of each sort for each name: the newest
	mostInAll = 40_000

	pruneEvery  = time.Minute
	pruneEvents = 10_000 // or after so many events
)

// history is what has happened to names. It is bounded.
type history struct {
	mu    sync.Mutex // protects what follows
	names map[string]*story
	count counts

	pruned time.Time // the last time
	events int       // since then

	observed bool // an observer was asked for
}

// counts are of this process, since the recorder was made.
type counts struct {
	held, waiting     int
	degraded          int
	lost, unconfirmed int
	outages           int // renewals that got no answer, and acquires
	lastOutage        time.Time
	lastError         string
	lastName          string // that the last error is about
}

// story is what has happened to one name.
type story struct {
	template string
	touched  time.Time
	full     time.Duration // the most that was seen of its holder's TTL
	holds    []*hold
	waits    []*wait
	marks    []mark
}

// hold is a time for which somebody has held the name.
type hold struct {
	key      string // of the holder: what tells two of them apart
	label    string
	kind     string
	fence    uint64
	from, to time.Time
	end      string // "released" or a reason of loss; "" if it is open, or simply was not seen any more
	ours     bool   // an observer of this process has told it
	open     bool
	since    bool // the lock service has said when it began
}

// wait is a time for which somebody has waited.
type wait struct {
	from, to time.Time
	end      string // "granted" or why not; "" if it is not known
	ours     bool
	open     bool
	since    bool // the lock service has said when it began
}

// mark is something that happened at an instant: a conflict, a loss.
type mark struct {
	at   time.Time
	kind string
	text string
}

func newHistory() *history { return &history{names: make(map[string]*story)} }

// of returns the story of a name, and makes room for it. The caller holds the mutex.
func (h *history) of(name string, now time.Time) *story {
	if h.events++; h.events >= pruneEvents || now.Sub(h.pruned) >= pruneEvery {
		h.prune(now)
	}
	s := h.names[name]
	if s == nil {
		if len(h.names) >= mostNames {
			h.forget(now)
		}
		s = &story{}
		h.names[name] = s
	}
	s.touched = now
	return s
}

// forget drops what is past, or else the quarter to which nothing has happened for longest.
func (h *history) forget(now time.Time) {
	maps.DeleteFunc(h.names, func(_ string, s *story) bool { return now.Sub(s.touched) > past })
	if len(h.names) < mostNames {
		return
	}
	byAge := slices.SortedFunc(maps.Keys(h.names), func(a, b string) int { return h.names[a].touched.Compare(h.names[b].touched) })
	for _, name := range byAge[:mostNames/4] {
		delete(h.names, name)
	}
}

// prune drops what is past, and if the rest is too much, the oldest of the names that have the most.
func (h *history) prune(now time.Time) {
	h.pruned, h.events = now, 0
	since := now.Add(-past)
	maps.DeleteFunc(h.names, func(_ string, s *story) bool {
		s.drop(since)
		return s.touched.Before(since) && len(s.holds) == 0
	})
	most := mostItems
	for h.items(most) > mostInAll {
		most /= 2
	}
	if most < mostItems {
		for _, s := range h.names {
			s.holds, s.waits, s.marks = newest(s.holds, most), newest(s.waits, most), newest(s.marks, most)
		}
	}
}

// items is how many items there are if no name has more of a sort than most.
func (h *history) items(most int) (n int) {
	for _, s := range h.names {
		n += min(len(s.holds), most) + min(len(s.waits), most) + min(len(s.marks), most)
	}
	return n
}

// drop forgets what was over by then. Leases of this process that go on are kept: their end is yet to be told.
func (s *story) drop(since time.Time) {
	s.holds = without(s.holds, func(t *hold) bool { return t.to.Before(since) && (!t.open || !t.ours) })
	s.waits = without(s.waits, func(w *wait) bool { return w.to.Before(since) })
	s.marks = without(s.marks, func(m mark) bool { return m.at.Before(since) })
}

// without leaves no room behind what is kept.
func without[T any](items []T, over func(T) bool) []T {
	if !slices.ContainsFunc(items, over) {
		return items
	}
	var kept []T
	for _, item := range items {
		if !over(item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// newest drops the oldest items beyond so many.
func newest[T any](items []T, most int) []T {
	if len(items) <= most {
		return items
	}
	return append(items[:0:0], items[len(items)-most:]...)
}

// keep makes room for one more item, and now and then for many.
func keep[T any](items []T) []T {
	if len(items) < mostItems {
		return items
	}
	return newest(items, mostItems*2/3)
}

// look takes over what a look has seen of the names that begin with prefix.
func (h *history) look(now time.Time, prefix string, p look.Picture) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := make(map[string]bool, len(p.Infos))
	for _, info := range p.Infos {
		seen[info.Name] = true
		h.of(info.Name, now).look(now, info)
	}
	if !p.Whole { // the first walk is under way, and may meet the others yet
		return
	}
	for name, s := range h.names {
		if !seen[name] && strings.HasPrefix(name, prefix) { // another page may see the others
			s.look(now, inspect.LeaseInfo{})
		}
	}
}

// look takes over who holds the name and who waits for it; an empty one closes what the looks have opened.
func (s *story) look(now time.Time, info inspect.LeaseInfo) {
	holders := map[string]*hold{}
	add := func(key, label string, held time.Duration) {
		holders[key] = &hold{
			key: key, label: label, kind: string(info.Kind), fence: info.Fence, from: now.Add(-min(held, past)), to: now, open: true, since: held > 0,
		}
	}
	for _, one := range info.Holders {
		add(one.Handle, one.Label, one.HeldFor)
	}
	if info.Held && len(info.Holders) == 0 {
		add(cmp.Or(info.Handle, info.Label, "?"), info.Label, info.HeldFor)
	}
	goes := false // somebody goes on holding it
	for _, t := range s.holds {
		if !t.open || t.ours {
			continue
		}
		if again, ok := holders[t.key]; ok {
			t.to, t.fence, t.label = now, max(t.fence, again.fence), again.label
			if again.since && again.from.Before(t.from) { // a backend may learn it only at a renewal
				t.from, t.since = again.from, true
			}
			delete(holders, t.key)
			goes = true
		} else {
			t.open = false
		}
	}
	if !goes { // another holder, of another TTL
		s.full = 0
	}
	s.full = max(s.full, info.Remaining)
	for _, key := range slices.Sorted(maps.Keys(holders)) {
		s.holds = append(keep(s.holds), holders[key])
	}
	s.line(now, info.Line)
}

// slack is how far apart two looks may say that the same waiter came.
const slack = 300 * time.Millisecond

// line takes over who waits. A waiter is told apart by when it came; if the lock service does not know that,
// by its place among those of whom it does not.
func (s *story) line(now time.Time, line []inspect.WaiterInfo) {
	known := make([]bool, len(line))
	for _, w := range s.waits {
		if !w.open || w.ours {
			continue
		}
		w.open = false
		for i, in := range line {
			came := now.Add(-in.Waited)
			if same := in.Waited == 0 && !w.since || came.Sub(w.from).Abs() < slack; same && !known[i] {
				known[i], w.open, w.to = true, true, now
				break
			}
		}
	}
	for i, in := range line {
		came := now.Add(-in.Waited)
		told := slices.ContainsFunc(s.waits, func(w *wait) bool { return w.ours && w.sameAs(came) })
		if !known[i] && !told {
			s.waits = append(keep(s.waits), &wait{from: came, to: now, open: true, since: in.Waited > 0})
		}
	}
}

// sameAs says whether a wait that began then is the same one, as the other source has told it.
func (w *wait) sameAs(began time.Time) bool { return w.from.Sub(began).Abs() < time.Second }
