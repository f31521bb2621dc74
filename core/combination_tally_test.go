package core_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/core"
)

// tally counts what has come up in all scenarios: what never does is not tested.
type tally struct {
	mu     sync.Mutex // protects the fields below
	played int
	counts map[string]int
}

func (a *tally) add(s *scene) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts == nil {
		a.counts = make(map[string]int)
	}
	a.played++
	tokens := make(map[string]int)
	for _, p := range s.parts {
		a.count(true, "leases")
		a.count(p.Degraded(), "degraded leases")
		a.count(p.lost, "lost leases")
		a.count(p.kind == reader, "readers")
		a.count(p.kind == limited, "holders of a limit")
		a.count(p.Inside() != nil, "re-entries")
		if p.Inside() == nil {
			tokens[p.Token()]++
			a.count(tokens[p.Token()] > 1, "turns without a command")
		}
	}
	for _, r := range s.requests {
		a.count(r.err == nil && r.given != nil && r.given.used == 1, "leases by a hand-off")
		a.count(r.err == nil && r.job.way == several, "leases of several names")
		for _, kind := range kindsOf(r.err) {
			a.count(true, fmt.Sprint(kind))
		}
	}
	for _, t := range s.tenancies {
		a.count(t.unheard, "grants to commands that were left")
		a.count(t.inLine, "grants in line")
	}
	for range s.robbed {
		a.count(true, "deleted locks")
	}
	for _, m := range s.allMarks {
		a.count(m.sure, "completions")
	}
}

func (a *tally) count(really bool, what string) {
	if really {
		a.counts[what]++
	} else {
		a.counts[what] += 0 // it is to be judged
	}
}

// judge fails the test if something came up too rarely to say anything.
func (a *tally) judge(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	t.Logf("%d scenarios: %v", a.played, a.counts)
	for _, kind := range []error{
		core.ErrHeld, core.ErrUnavailable, core.ErrDuplicate, core.ErrDraining, core.ErrClosed,
	} {
		a.count(false, fmt.Sprint(kind))
	}
	a.count(false, "deleted locks")
	for what, n := range a.counts {
		if a.played >= 500 && n < a.played/50 {
			t.Errorf("%d scenarios, and %d of %q: too few to say anything", a.played, n, what)
		}
	}
}
