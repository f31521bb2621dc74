package backendtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// span is the time in which somebody relied on a name, or in which the name was to be kept from others.
type span struct {
	who, kind, end string
	limit          int // how many may hold it together in this way; 0 is any number
	fence          uint64
	from, to       time.Time // by the clock of the one process that all workers are in
}

// strike is a fault that has happened.
type strike struct {
	what     string
	from, to time.Time
}

// finding is a rule that was broken.
type finding struct {
	name string
	at   time.Time
	what string
}

// history is what has happened in a storm.
type history struct {
	began time.Time

	mu       sync.Mutex // protects the fields below
	spans    map[string][]span
	strikes  []strike
	findings []finding
}

func newHistory() *history { return &history{began: time.Now(), spans: make(map[string][]span)} }

func (h *history) add(name string, s span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spans[name] = append(h.spans[name], s)
}

func (h *history) struck(what string, began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.strikes = append(h.strikes, strike{what, began, time.Now()})
}

// giveUp ends the time for which a name was kept for a hand-off: it was asked for then.
func (h *history) giveUp(name, who string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, s := range slices.Backward(h.spans[name]) {
		if s.who == who {
			if s.to.After(at) {
				h.spans[name][i].to = at
			}
			return
		}
	}
}

func (h *history) find(name, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.findings = append(h.findings, finding{name, time.Now(), fmt.Sprintf(format, args...)})
}

// check returns what was found at once, and what the spans show. fences says whether the backend has fences.
func (h *history) check(fences bool) []finding {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := h.findings
	for _, name := range slices.Sorted(maps.Keys(h.spans)) {
		spans := h.spans[name]
		slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
		tell := func(s span, what string) { found = append(found, finding{name, s.from, name + ": " + what}) }
		checkHolders(spans, tell)
		if fences {
			checkFences(spans, tell)
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return a.at.Compare(b.at) })
	return found
}

// checkHolders looks who else held the name when somebody got it.
func checkHolders(spans []span, tell func(span, string)) {
	var now []span // those who hold it
	for _, s := range spans {
		now = slices.DeleteFunc(now, func(other span) bool { return !s.from.Before(other.to) })
		most, there := s.limit, 1
		for _, other := range now {
			if s.limit == 1 || other.limit == 1 || (s.limit == 0) != (other.limit == 0) {
				tell(s, fmt.Sprintf("two holders: %s (%s), and %s (%s)", other.who, other.kind, s.who, s.kind))
				continue
			}
			most, there = min(most, other.limit), there+1
		}
		if most > 0 && there > most && most > 1 {
			tell(s, fmt.Sprintf("%d holders, where %d may be: the last one is %s", there, most, s.who))
		}
		now = append(now, s)
	}
}

// checkFences looks whether fences grow. A reader's is between those of the writers before and after it. Those of limited number have none.
func checkFences(spans []span, tell func(span, string)) {
	var written, read span // the largest fences so far
	for _, s := range spans {
		if s.limit > 1 {
			continue
		}
		before := written
		if s.limit == 1 && read.fence > written.fence {
			before = read
		}
		if s.fence <= before.fence {
			tell(s, fmt.Sprintf("fence %d of %s after fence %d of %s", s.fence, s.who, before.fence, before.who))
		}
		if s.limit == 1 {
			written = maxFence(written, s)
		} else {
			read = maxFence(read, s)
		}
	}
}

func maxFence(a, b span) span {
	if b.fence > a.fence {
		return b
	}
	return a
}

// around is what happened to a finding's name about that time, and what was broken.
func (h *history) around(f finding, near time.Duration) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	begin, end := f.at.Add(-near), f.at.Add(near/2)
	meets := func(from, to time.Time) bool { return !to.Before(begin) && !from.After(end) }
	type line struct {
		from time.Time
		text string
	}
	var lines []line
	for _, s := range h.spans[f.name] {
		if meets(s.from, s.to) {
			lines = append(lines, line{s.from, h.between(s.from, s.to) + fmt.Sprintf("%s, %s, fence %d: %s", s.who, s.kind, s.fence, s.end)})
		}
	}
	for _, s := range h.strikes {
		if meets(s.from, s.to) {
			lines = append(lines, line{s.from, h.between(s.from, s.to) + "FAULT " + s.what})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.from.Compare(b.from) })
	if n := len(lines) - 60; n > 0 {
		lines = lines[n:]
	}
	var text strings.Builder
	fmt.Fprintf(&text, "found at %s; who held %s then:", h.after(f.at), cmp.Or(f.name, "it"))
	for _, l := range lines {
		text.WriteString("\n  " + l.text)
	}
	return text.String()
}

func (h *history) between(from, to time.Time) string {
	return h.after(from) + " to " + h.after(to) + "  "
}

// after is a time as seconds since the storm began.
func (h *history) after(at time.Time) string {
	return fmt.Sprintf("%8.3f s", at.Sub(h.began).Seconds())
}
