package core_test

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// chronicle is what has happened in a scenario, and what should not have.
type chronicle struct {
	book   sync.Mutex // protects the fields below
	began  time.Time
	lines  []func() string // formatted only for who wants to know how a fault came about
	faults []string
}

func (c *chronicle) note(format string, args ...any) {
	c.book.Lock()
	defer c.book.Unlock()
	at := time.Since(c.began)
	c.lines = append(c.lines, func() string { return fmt.Sprintf("\t%12v  ", at) + fmt.Sprintf(format, args...) })
}

// fault says that a promise was broken.
func (c *chronicle) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.note("FAULT: %s", text)
	c.book.Lock()
	defer c.book.Unlock()
	if !slices.Contains(c.faults, text) {
		c.faults = append(c.faults, text)
	}
}

// report fails the test if there are faults.
func (c *chronicle) report(t *testing.T, p *scenario) {
	t.Helper()
	if len(c.faults) == 0 {
		return
	}
	lines := []string{fmt.Sprintf("%d faults:\n\t%s", len(c.faults), strings.Join(c.faults, "\n\t"))}
	lines = append(lines, fmt.Sprintf("The scenario has a TTL of %v, processes that are prompt: %v, and", p.ttl, p.prompt))
	for _, e := range p.jobs {
		lines = append(lines, fmt.Sprintf("\t%+v", *e))
	}
	for _, line := range c.lines {
		lines = append(lines, line())
	}
	t.Error(strings.Join(lines, "\n"))
}

// stacks returns those of the goroutines of this bubble, for who wants to know why nothing happens.
func stacks() string {
	buf := make([]byte, 1<<20)
	all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	bubble := regexp.MustCompile(`synctest bubble \d+`).FindString(all[0])
	return strings.Join(slices.DeleteFunc(all, func(stack string) bool { return !strings.Contains(stack, bubble+"]") }), "\n\n")
}

// tally counts what comes up in the scenarios: what never does is not tested.
type tally struct {
	mu     sync.Mutex // protects the fields below
	played int
	counts map[string]int
}

func (s *scene) count(really bool, what string) {
	if really {
		s.counts[what]++
	}
}

func (a *tally) add(counts map[string]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.played++
	for what, n := range counts {
		a.counts[what] += n
	}
}

// judge fails the test if something came up too rarely to say anything.
func (a *tally) judge(t *testing.T) {
	t.Helper()
	t.Logf("%d scenarios: %v", a.played, a.counts)
	for _, what := range []any{
		core.ErrHeld, core.ErrUnavailable, core.ErrDuplicate, core.ErrDraining, core.ErrClosed, core.ErrInvalid, "leases", "degraded leases",
		"lost leases", "readers", "holders of a limit", "re-entries", "turns without a command", "leases by a hand-off", "leases of several names",
		"grants to commands that were left", "grants in line", "deleted locks", "completions",
	} {
		if n := a.counts[fmt.Sprint(what)]; a.played >= 500 && n < a.played/50 {
			t.Errorf("%d scenarios, and %d of %q: too few to say anything", a.played, n, what)
		}
	}
}
