package redislock_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Merged commands answer as single ones do: each claim for itself. Of several claims of one name, one is granted.
func TestAnAnswerIsTheSameWhetherACommandWasMergedOrNot(t *testing.T) {
	t.Parallel()
	const n = 240
	const ( // whose the names are
		free = iota
		theirs
		foreign
		poisoned
		wanted
		kinds
	)
	p := part(t)
	s, other := p.store(t), p.store(t)
	of := func(i int) driver.Claim {
		c := claim(fmt.Sprint("name-", i), fmt.Sprint("mine-", i), labelled)
		c.TTL += time.Duration(i%7) * time.Minute
		if i%kinds == wanted {
			c.Name = fmt.Sprint("wanted-", i%3)
		}
		return c
	}
	for i := range n {
		switch i % kinds {
		case theirs:
			c := claim(of(i).Name, fmt.Sprint("other-", i), labelled)
			grant(t, other, c)
		case foreign:
			p.do(t, "set", p.key(of(i).Name), "x", "ex", 60)
		case poisoned:
			p.do(t, "rpush", p.key(of(i).Name), "x")
		}
	}
	granted := make(map[string]string)
	for _, again := range []string{"", "again: "} { // the second time, what we own is ours already
		var mu sync.Mutex // protects fences and granted
		fences := make(map[uint64]bool)
		crowd(n, func(i int) {
			c := of(i)
			g, err := s.Acquire(t.Context(), c)
			m := driver.Explain(err)
			mu.Lock()
			defer mu.Unlock()
			switch i % kinds {
			case free:
				if err != nil || fences[g.Fence] || g.Fence < 1e15 {
					t.Errorf("%sfree: %v, %v", again, g, err)
				}
				fences[g.Fence] = true
			case theirs:
				if m.Held == nil || m.Held.Label != "who" || m.Held.Remaining <= 0 {
					t.Errorf("%ssomebody else's: %v", again, err)
				}
			case foreign:
				if m.Held == nil || m.Held.Label != "" || m.Held.Remaining <= 0 {
					t.Errorf("%sforeign: %v", again, err)
				}
			case poisoned:
				if m.Kind != driver.NotDone {
					t.Errorf("%spoisoned: %v", again, err)
				}
			case wanted:
				if err == nil && granted[c.Name] != "" && granted[c.Name] != c.Token || err != nil && m.Held == nil {
					t.Errorf("%s%s: %v; granted to %q, too", again, c.Name, err, granted[c.Name])
				}
				if err == nil {
					granted[c.Name] = c.Token
				}
			}
		})
	}
	if len(granted) != 3 {
		t.Errorf("granted: %v", granted)
	}
	for i := free; i < n; i += kinds {
		if c := of(i); p.direct.PTTL(t.Context(), p.key(c.Name)).Val().Round(time.Minute) != c.TTL {
			t.Errorf("%s does not last for %s", c.Name, c.TTL)
		}
	}
	crowd(n, func(i int) {
		c := of(i)
		err := s.Release(t.Context(), c)
		switch i % kinds {
		case free:
			if err != nil {
				t.Errorf("ours: %v", err)
			}
		case poisoned:
			if err == nil || errors.Is(err, driver.ErrNotOwner) {
				t.Errorf("poisoned: %v", err)
			}
		default:
			if mine := granted[c.Name] == c.Token; mine != (err == nil) || !mine && !errors.Is(err, driver.ErrNotOwner) {
				t.Errorf("%s, ours: %t: %v", c.Name, mine, err)
			}
		}
	})
	for i := range n {
		if exists := p.direct.Exists(t.Context(), p.key(of(i).Name)).Val() == 1; exists == (i%kinds == free || i%kinds == wanted) {
			t.Errorf("%s: exists: %t", of(i).Name, exists)
		}
	}
}

// A merged release serves those who wait, and a merged acquire does not get in before them.
func TestMergedCommandsRespectTheLine(t *testing.T) {
	t.Parallel()
	const n = 100
	p := part(t)
	s, waiting := p.store(t), p.store(t)
	name := func(i int, who string) driver.Claim { return claim(fmt.Sprint("name-", i), fmt.Sprint(who, i)) }
	crowd(n, func(i int) { _, err := s.Acquire(t.Context(), name(i, "mine-")); check(t, err) })
	heard := make(chan error, n)
	for i := range n {
		go func() { _, err := waiting.Wait(t.Context(), name(i, "next-")); heard <- err }()
	}
	eventually(t, "all have lined up", func() bool { return len(p.direct.Keys(t.Context(), "{"+p.prefix+"*:line").Val()) == n })
	crowd(n, func(i int) { check(t, s.Release(t.Context(), name(i, "mine-"))) })
	for range n {
		check(t, <-heard)
	}
	crowd(n, func(i int) { _, err := s.Acquire(t.Context(), name(i, "mine-")); _ = another(t, err) })
}

// check is ok on any goroutine.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
