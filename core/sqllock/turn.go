package sqllock

import (
	"context"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// turn is what the first place in a queue writes to take the name, without reading the row once more. It
// works if the state is as the place has seen it last, and the place is not dead: then it is still the first one.
type turn struct {
	before string // the state
	after  string // the state without the place
	head   string
	others bool // in the queue
	dead   int64
}

// turnOf is c's turn, nil unless its place is the first one. The state must be as it is in the table.
func (r *row) turnOf(c driver.Claim) *turn {
	if r.together() || len(r.Line) == 0 || r.Line[0].ID != c.At() {
		return nil
	}
	before, err := r.encode()
	if err != nil {
		return nil
	}
	next := row{state: state{Line: r.Line[1:]}}
	after, err := next.encode()
	if err != nil {
		return nil
	}
	return &turn{before, after, next.head(), len(next.Line) > 0, r.Line[0].Dead}
}

// expect notes what c's place has seen.
func (h *hub) expect(c driver.Claim, t *turn) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.ears[c.At()]; e != nil {
		e.turn, e.called = t, false
	}
}

// expected is what c's place has seen, if it has been told since. It is good once.
func (h *hub) expected(c driver.Claim) *turn {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.ears[c.At()]
	if e == nil || !e.called {
		return nil
	}
	t := e.turn
	e.turn, e.called = nil, false
	return t
}

// takeTurn takes the name if c's place has seen that it is the first one, and the name is free now.
func (s *store) takeTurn(ctx context.Context, c driver.Claim) (g driver.Grant, granted bool, err error) {
	t := s.hub.expected(c)
	if t == nil || s.do.claim.text == "" || !c.Exclusive() || c.Dedup > 0 || c.Handoff != "" {
		return g, false, nil
	}
	n, sign := fencesOf(c), 1
	if t.others {
		n = min(n, driver.TurnsBesideOthers)
	}
	if n > 1 {
		sign = -1
	}
	last, granted, err := s.number(ctx, s.do.claim, c.Name, c.Token, c.Label, c.TTL.Microseconds(), n, sign, t.before, t.head, t.after, t.dead)
	return grantOf(last, n), granted, err
}
