package inspector

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Recorder remembers what happens to the leases of this process, for the page. Make it before the Locker,
// and give its Observer to [core.WithObserver]. It keeps 15 minutes, of the 2000 names to which something
// has happened last, and less of them if that would take more than about 15 MiB.
type Recorder struct{ history *history }

// NewRecorder returns an empty one.
func NewRecorder() *Recorder { return &Recorder{newHistory()} }

// Observer returns an observer that records. To have another one beside it, use [Recorder.Before].
func (r *Recorder) Observer() core.Observer { return r.Before(core.Observer{}) }

// Before returns an observer that records, and then tells next, such as that of package telemetry.
func (r *Recorder) Before(next core.Observer) core.Observer {
	h := r.history
	h.observe()
	return core.Observer{
		WorkContext: next.WorkContext,
		Acquired:    inTurn(h.acquired, next.Acquired, h.leased),
		Held:        inTurn(h.conflict, next.Held),
		Waiting:     inTurn(h.waiting, next.Waiting, count[core.WaitingEvent](h, 0, 1)),
		LongWait:    next.LongWait,
		Waited:      inTurn(h.waited, next.Waited, count[core.WaitedEvent](h, 0, -1)),
		Failed:      inTurn(h.failed, next.Failed),
		Limited:     next.Limited,
		Degraded:    inTurn(h.degraded, next.Degraded),
		Renewed:     inTurn(h.renewed, next.Renewed),
		Lost:        inTurn(h.lost, next.Lost, count[core.LostEvent](h, -1, 0)),
		Released:    inTurn(h.released, next.Released, count[core.ReleasedEvent](h, -1, 0)),
		Unconfirmed: inTurn(h.unconfirmed, next.Unconfirmed, count[core.UnconfirmedEvent](h, -1, 0)),
		Missed:      inTurn(next.Missed, h.missed),
		Dropped:     next.Dropped,
	}
}

func (h *history) observe() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.observed = true
}

// inTurn calls the functions that there are. Leases and waits are counted by the last one: what a panic of one
// before it ends counts for core as not told, and comes again with Missed.
func inTurn[E any](functions ...func(E)) func(E) {
	return func(e E) {
		for _, f := range functions {
			if f != nil {
				f(e)
			}
		}
	}
}

// count returns a function that counts leases and calls that wait.
func count[E any](h *history, leases, waiters int) func(E) {
	return func(E) { h.add(leases, waiters) }
}

func (h *history) add(leases, waiters int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count.held += leases
	h.count.waiting += waiters
}

func (h *history) leased(e core.AcquiredEvent) {
	if !e.Reentry {
		h.add(1, 0)
	}
}

// begin locks the history, and returns the story that an event is about.
func (h *history) begin(s core.Subject) (story *story, end func()) {
	h.mu.Lock()
	story = h.of(s.Name, s.At)
	if s.Template != "" {
		story.template = s.Template
	}
	return story, h.mu.Unlock
}

func (h *history) acquired(e core.AcquiredEvent) {
	s, end := h.begin(e.Subject)
	defer end()
	if e.Reentry {
		return
	}
	kind := "exclusive"
	if e.Degraded {
		h.count.degraded++
		kind = "degraded"
	}
	s.tenures = append(keep(s.tenures), &tenure{
		key: "fence " + strconv.FormatUint(e.Fence, 10), kind: kind, fence: e.Fence, from: e.At, to: e.At, ours: true, open: true,
	})
}

// over ends the tenure of this process that began about when the event says.
func (h *history) over(s *story, at time.Time, held time.Duration, how string) {
	from := at.Add(-held)
	var nearest *tenure
	for _, t := range s.tenures {
		if t.ours && t.open && (nearest == nil || t.from.Sub(from).Abs() < nearest.from.Sub(from).Abs()) {
			nearest = t
		}
	}
	if nearest == nil { // it was forgotten, or is older than the recorder
		nearest = &tenure{kind: "exclusive", from: from, ours: true}
		s.tenures = append(keep(s.tenures), nearest)
	}
	if nearest.kind == "degraded" {
		h.count.degraded--
	}
	nearest.to, nearest.open, nearest.end = at, false, how
}

func (h *history) released(e core.ReleasedEvent) {
	s, end := h.begin(e.Subject)
	defer end()
	h.over(s, e.At, e.Held, "released")
}

func (h *history) unconfirmed(e core.UnconfirmedEvent) {
	s, end := h.begin(e.Subject)
	defer end()
	h.count.unconfirmed++
	h.over(s, e.At, e.Held, "release not confirmed")
}

func (h *history) lost(e core.LostEvent) {
	s, end := h.begin(e.Subject)
	defer end()
	h.count.lost++
	h.over(s, e.At, e.Held, "lost: "+string(e.Reason))
	s.marks = append(keep(s.marks), mark{e.At, "lost", string(e.Reason)})
}

func (h *history) conflict(e core.HeldEvent) {
	s, end := h.begin(e.Subject)
	defer end()
	s.marks = append(keep(s.marks), mark{e.At, "conflict", ""})
}

func (h *history) waiting(e core.WaitingEvent) {
	_, end := h.begin(e.Subject)
	end()
}

func (h *history) waited(e core.WaitedEvent) {
	s, end := h.begin(e.Subject)
	defer end()
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

func (h *history) failed(e core.FailedEvent) {
	_, end := h.begin(e.Subject)
	defer end()
	h.outage(e.Subject, e.Err)
}

func (h *history) renewed(e core.RenewedEvent) {
	if e.Err == nil { // the many; they touch nothing
		return
	}
	_, end := h.begin(e.Subject)
	defer end()
	h.outage(e.Subject, e.Err)
}

func (h *history) degraded(e core.DegradedEvent) {
	_, end := h.begin(e.Subject)
	defer end()
	h.outage(e.Subject, e.Err)
}

// outage counts an answer that did not come. The caller holds the mutex.
func (h *history) outage(s core.Subject, err error) {
	if errors.Is(err, core.ErrUnavailable) {
		h.count.outages++
		h.count.lastOutage, h.count.lastError, h.count.lastName = s.At, err.Error(), s.Name
	}
}

func (h *history) missed(e core.MissedEvent) { h.add(e.Leases, e.Waiters) }
