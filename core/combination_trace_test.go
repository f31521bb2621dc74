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
)

// chronicle is what has happened in a scenario, and what should not have.
type chronicle struct {
	mu     sync.Mutex // protects the fields below
	began  time.Time
	lines  []entry
	faults []string
}

type entry struct {
	at     time.Duration
	format string
	args   []any
}

// note writes a line, for who wants to know how a fault came about. It is formatted only then.
func (c *chronicle) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, entry{time.Since(c.began), format, args})
}

// fault says that a promise was broken.
func (c *chronicle) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.note("FAULT: %s", text)
	c.mu.Lock()
	defer c.mu.Unlock()
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
	var b strings.Builder
	fmt.Fprintf(&b, "%d faults:\n", len(c.faults))
	for _, f := range c.faults {
		fmt.Fprintf(&b, "\t%s\n", f)
	}
	fmt.Fprintf(&b, "The scenario has a TTL of %v, processes that are prompt: %v, and\n", p.ttl, p.prompt)
	for _, e := range p.jobs {
		fmt.Fprintf(&b, "\t%v\n", e)
	}
	b.WriteString("What happened:\n")
	for _, l := range c.lines {
		fmt.Fprintf(&b, "\t%12v  %s\n", l.at, fmt.Sprintf(l.format, l.args...))
	}
	t.Error(b.String())
}

// stacks returns those of the goroutines of this bubble, for who wants to know why nothing happens.
func stacks() string {
	buf := make([]byte, 1<<20)
	all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	bubble := regexp.MustCompile(`synctest bubble \d+`).FindString(all[0])
	return strings.Join(slices.DeleteFunc(all, func(stack string) bool { return !strings.Contains(stack, bubble+"]") }), "\n\n")
}
