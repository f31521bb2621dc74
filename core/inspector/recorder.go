package inspector

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Recorder remembers what happens to the leases of this process, for the page. Make it before the Locker,
// and give its Observe to [core.WithObserver]. It keeps 15 minutes, of the 2000 names to which something
// has happened last, and less of them if that would take more than about 15 MiB.
type Recorder struct{ history *history }

// NewRecorder returns an empty one.
func NewRecorder() *Recorder {
	h := newHistory()
	h.observed = true
	return &Recorder{h}
}

// Observe records an event.
func (r *Recorder) Observe(e core.Event) {
	h := r.history
	switch e.Kind {
	case core.EventAcquired:
		h.acquired(e)
	case core.EventHeld:
		h.mark(e, mark{e.At, "conflict", ""})
	case core.EventWaiting:
		h.count1(e, func() { h.count.waiting++ })
	case core.EventWaited:
		h.waited(e)
	case core.EventFailed, core.EventDegraded:
		h.count1(e, func() { h.outage(e) })
	case core.EventRenewed:
		if e.Err != nil { // the others are many
			h.count1(e, func() { h.outage(e) })
		}
	case core.EventLost:
		h.ended(e, "lost: "+string(e.Reason))
		h.mark(e, mark{e.At, "lost", string(e.Reason)})
	case core.EventReleased:
		h.ended(e, "released")
	case core.EventUnconfirmed:
		h.ended(e, "release not confirmed")
	case core.EventMissed:
		h.mu.Lock()
		defer h.mu.Unlock()
		h.count.held += e.Leases
		h.count.waiting += e.Waiters
	default:
	}
}

// begin locks the history, and returns the story that an event is about.
func (h *history) begin(e core.Event) (story *story, end func()) {
	h.mu.Lock()
	story = h.of(e.Name, e.At)
	if e.Template != "" {
		story.template = e.Template
	}
	return story, h.mu.Unlock
}

// count1 counts an event.
func (h *history) count1(e core.Event, count func()) {
	_, end := h.begin(e)
	defer end()
	count()
}

func (h *history) mark(e core.Event, m mark) {
	s, end := h.begin(e)
	defer end()
	s.marks = append(keep(s.marks), m)
}

func (h *history) acquired(e core.Event) {
	s, end := h.begin(e)
	defer end()
	if e.Reentry {
		return
	}
	h.count.held++
	kind := "exclusive"
	if e.Degraded {
		h.count.degraded++
		kind = "degraded"
	}
	s.holds = append(keep(s.holds), &hold{
		key: "fence " + strconv.FormatUint(e.Fence, 10), kind: kind, fence: e.Fence, from: e.At, to: e.At, ours: true, open: true,
	})
}

// over ends the hold of this process that began about when the event says.
func (h *history) over(s *story, at time.Time, held time.Duration, how string) {
	from := at.Add(-held)
	var nearest *hold
	for _, t := range s.holds {
		if t.ours && t.open && (nearest == nil || t.from.Sub(from).Abs() < nearest.from.Sub(from).Abs()) {
			nearest = t
		}
	}
	if nearest == nil { // it was forgotten, or is older than the recorder
		nearest = &hold{kind: "exclusive", from: from, ours: true}
		s.holds = append(keep(s.holds), nearest)
	}
	if nearest.kind == "degraded" {
		h.count.degraded--
	}
	nearest.to, nearest.open, nearest.end = at, false, how
}

// ended ends a lease of this process.
func (h *history) ended(e core.Event, how string) {
	s, end := h.begin(e)
	defer end()
	h.count.held--
	switch e.Kind {
	case core.EventUnconfirmed:
		h.count.unconfirmed++
	case core.EventLost:
		h.count.lost++
	default:
	}
	h.over(s, e.At, e.Held, how)
}

func (h *history) waited(e core.Event) {
	s, end := h.begin(e)
	defer end()
	h.count.waiting--
	how := "granted"
	if errors.Is(e.Err, core.ErrHeld) {
		how = "gave up"
	} else if e.Err != nil {
		how = "ended"
	}
	from := e.At.Add(-e.Took)
	s.waits = slices.DeleteFunc(s.waits, func(w *wait) bool { return !w.ours && w.sameAs(from) }) // a look has seen it too
	s.waits = append(keep(s.waits), &wait{from: from, to: e.At, end: how, ours: true})
}

// outage counts an answer that did not come. The caller holds the mutex.
func (h *history) outage(e core.Event) {
	if errors.Is(e.Err, core.ErrUnavailable) {
		h.count.outages++
		h.count.lastOutage, h.count.lastError, h.count.lastName = e.At, e.Err.Error(), e.Name
	}
}
