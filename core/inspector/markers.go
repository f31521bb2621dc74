package inspector

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/operate"
)

// markerLook walks through the dedup markers for all who ask. As in package look, walks take a twentieth of
// the time at most; in between, everybody sees what the last one has found.
type markerLook struct {
	locks  *core.Locker
	prefix string
	turn   chan struct{} // of size one: full while somebody uses what follows

	at    time.Time     // of the last walk that has found all
	ended time.Time     // of the last walk
	every time.Duration // until the next one
	fails int           // walks that have failed, one after the other
	found []inspect.MarkerInfo
	more  bool // there are more than mostMarkers
	err   error
}

const (
	mostMarkers  = 10_000          // that are remembered
	markersEvery = 2 * time.Second // at most so often
	markersShare = 20              // walks take one part in so many of the time
)

func newMarkerLook(locks *core.Locker, prefix string) *markerLook {
	return &markerLook{locks: locks, prefix: prefix, turn: make(chan struct{}, 1)}
}

// use runs f when nobody else uses the look.
func (m *markerLook) use(ctx context.Context, f func(context.Context)) error {
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-m.turn }()
	f(ctx)
	return nil
}

// look walks through the markers, if it is time to. The caller uses the look.
func (m *markerLook) look(ctx context.Context) {
	began := time.Now()
	if began.Before(m.ended.Add(m.every)) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout) // it is for all who ask
	defer cancel()
	var found []inspect.MarkerInfo
	m.more, m.err = false, nil
	for info, err := range operate.New(m.locks).Markers(ctx, m.prefix) {
		if m.err = err; err != nil {
			break
		}
		if m.more = len(found) == mostMarkers; m.more {
			break
		}
		found = append(found, info)
	}
	if m.err == nil {
		slices.SortFunc(found, func(a, b inspect.MarkerInfo) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Scope, b.Scope))
		})
		same := func(a, b inspect.MarkerInfo) bool { return a.Name == b.Name && a.Scope == b.Scope }
		m.found, m.at = slices.CompactFunc(found, same), began // a walk may meet one twice
	}
	m.ended = time.Now()
	took := m.ended.Sub(began)
	if m.err == nil {
		m.fails = 0
	} else { // an outage says nothing about the cost of a walk; but a walk may never end in time
		took = min(took, time.Second<<min(m.fails, 10))
		m.fails++
	}
	m.every = max(markersEvery, markersShare*took)
}

// remove removes a marker, and forgets it.
func (m *markerLook) remove(ctx context.Context, name, scope string) (removed bool, err error) {
	removed, err = operate.New(m.locks).RemoveMarker(ctx, name, scope)
	if err == nil {
		_ = m.use(ctx, func(context.Context) { // else the next walk finds out
			m.found = slices.DeleteFunc(m.found, func(i inspect.MarkerInfo) bool { return i.Name == name && i.Scope == scope })
		})
	}
	return removed, err
}

type markersView struct {
	Every   int64        `json:"every"` // how often there is a walk
	Total   int          `json:"total"` // that match
	More    bool         `json:"more"`  // there are some that were not looked at
	Release bool         `json:"release"`
	Markers []markerView `json:"markers"`
}

type markerView struct {
	Name  string `json:"name"`
	Scope string `json:"scope"`
	Label string `json:"label,omitempty"`
	TTL   int64  `json:"ttl"`
}

// markers answers with the markers that match a search, or those of one name.
func (h *Handler) markers(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	search, name, one := strings.ToLower(q.Get("search")), q.Get("name"), q.Has("name")
	v := markersView{Release: h.allow != nil, Markers: []markerView{}}
	var err error
	gone := h.marks.use(r.Context(), func(ctx context.Context) {
		h.marks.look(ctx)
		v.Every, v.More, err = h.marks.every.Milliseconds(), h.marks.more, h.marks.err
		for _, info := range h.marks.found {
			left := info.Remaining - time.Since(h.marks.at)
			matches := strings.Contains(strings.ToLower(info.Name+"\x00"+info.Scope+"\x00"+info.Label), search)
			if left <= 0 || one && info.Name != name || !matches {
				continue
			}
			if v.Total++; len(v.Markers) < mostShown {
				v.Markers = append(v.Markers, markerView{info.Name, info.Scope, info.Label, left.Milliseconds()})
			}
		}
	})
	switch {
	case gone != nil:
		fail(w, http.StatusServiceUnavailable, "another look is under way")
	case errors.Is(err, core.ErrInvalid):
		fail(w, http.StatusNotImplemented, "this lock service has no markers, or cannot tell which there are")
	case err != nil:
		fail(w, http.StatusServiceUnavailable, err.Error())
	default:
		answer(w, http.StatusOK, v)
	}
}
