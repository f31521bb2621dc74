package core

import (
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// seen is what is known of a name. A call knows it from its own attempts and those of others; a
// queue knows it from its contender's last attempt. The zero value says nothing.
type seen struct {
	held     *driver.Held // the name has a holder
	at       time.Time    // when that was so
	answered time.Time    // when the backend last answered
	heldAt   clock.Awake  // when the backend itself last said "held"; 0 if it has not
	done     *duplicate
	err      error // matches ErrUnavailable: what the last attempt came to
}

// duplicate is the answer to whoever asks with a dedup scope.
type duplicate struct {
	DuplicateError

	scope string
}

// merge adds what somebody else has seen, or what this call has seen since.
func (s *seen) merge(v seen) {
	if v.held != nil {
		s.held, s.at = v.held, v.at
	}
	if v.err != nil {
		s.err = v.err
	}
	s.heldAt = max(s.heldAt, v.heldAt)
	if v.answered.After(s.answered) {
		s.answered = v.answered
	}
}

func (s seen) empty() bool { return s.held == nil && s.done == nil && s.err == nil }

// concerns says whether s is also an answer to a call that wants the name by c.
func (s seen) concerns(c *config) bool {
	return s.held != nil || s.err != nil || s.done != nil && c.dedup > 0 && s.done.scope == c.scope
}

// heldError makes the error for a name whose holder was seen a while ago.
func (s seen) heldError(name string) *HeldError {
	h := s.held
	after := h.Remaining - time.Since(s.at)
	switch {
	case h.Exact:
	case after <= 0:
		after = jitter(time.Second)
	default:
		after = jitter(min(after, time.Second))
	}
	return &HeldError{Name: name, Label: h.Label, RetryAfter: max(after, time.Millisecond), Exact: h.Exact}
}
