package redislock_test

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// Merged commands answer as single ones do, and do the same: each claim for itself. Of several claims of one name one is granted.
func TestAnAnswerIsTheSameWhetherACommandWasMergedOrNot(t *testing.T) {
	t.Parallel()
	const n = 8 // of each
	p := part(t)
	s := store(t, dial(t, &redis.Options{Addr: p.addr, Dialer: gathering}), redislock.WithPrefix(p.prefix))
	other := p.store(t)
	theirs := func(c driver.Claim) driver.Claim { c.Token = rand.Text()[:22]; return c }
	stands := []struct {
		how   string
		begin func(c driver.Claim)
	}{
		{"free", func(driver.Claim) {}},
		{"wanted by some", func(driver.Claim) {}},
		{"ours", func(c driver.Claim) { grant(t, s, c) }},
		{"theirs", func(c driver.Claim) { grant(t, other, theirs(c)) }},
		{"foreign", func(c driver.Claim) { p.do(t, "set", p.key(c.Name), "x", "ex", 60) }},
		{"of another type", func(c driver.Claim) { p.do(t, "rpush", p.key(c.Name), "x") }},
	}
	all := map[bool]map[string][]string{false: {}, true: {}} // by whether they were merged, and what of
	var fences sync.Map
	for together, said := range all {
		var claims []driver.Claim
		for _, name := range stands {
			for i := range n {
				c := claim(fmt.Sprint(together, name.how, i), fmt.Sprint("mine-", i), labelled)
				if name.how == "wanted by some" {
					c.Name = fmt.Sprint(together, name.how, i%3)
				} else {
					c.TTL += time.Duration(i) * time.Minute
				}
				name.begin(c)
				claims = append(claims, c)
			}
		}
		acquire := func(c driver.Claim) error {
			g, err := s.Acquire(t.Context(), c)
			if _, twice := fences.LoadOrStore(g.Fence, true); err == nil && twice {
				t.Errorf("%s: fence %d twice", c.Name, g.Fence)
			}
			return err
		}
		releases := func(c driver.Claim) error { return s.Release(t.Context(), c) }
		for step, call := range []func(driver.Claim) error{acquire, acquire, releases, acquire} {
			errs := make([]error, len(claims))
			if together {
				crowd(len(claims), func(i int) { errs[i] = call(claims[i]) })
			} else {
				for i, c := range claims {
					errs[i] = call(c)
				}
			}
			for i, c := range claims {
				m, value, left := driver.Explain(errs[i]), p.value(t, c.Name), p.direct.PTTL(t.Context(), p.key(c.Name)).Val()
				text := fmt.Sprintf("kind %d; ours: %t, free: %t, for %s", m.Kind, strings.HasPrefix(value, c.Token), value == "", left.Round(time.Minute))
				if m.Held != nil {
					text += fmt.Sprintf("; held by %q, for a while: %t", m.Held.Label, m.Held.Remaining > 0)
				}
				what := fmt.Sprint(stands[i/n].how, ", call ", step)
				said[what] = append(said[what], text)
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(all[false])) {
		alone, merged := slices.Sorted(slices.Values(all[false][what])), slices.Sorted(slices.Values(all[true][what]))
		if !slices.Equal(alone, merged) {
			t.Errorf("%s: alone\n%s\nmerged\n%s", what, strings.Join(alone, "\n"), strings.Join(merged, "\n"))
		}
	}
}

// check is ok on any goroutine.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
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
	for i := range n / 2 { // free, and nobody has told who waits
		p.do(t, "del", p.key(name(i, "").Name))
	}
	crowd(n/2, func(i int) { _, err := s.Acquire(t.Context(), name(i, "late-")); _ = another(t, err) })
	if t.Failed() {
		return // who got in stays
	}
	crowd(n, func(i int) { _ = s.Release(t.Context(), name(i, "mine-")) }) // half of them are not the owner any more
	for range n {
		check(t, <-heard)
	}
}
