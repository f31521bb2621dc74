package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// fake is a lock library that is broken in some way.
type fake struct {
	fence  func(n uint64) uint64 // of the n-th grant
	grants atomic.Uint64
	err    error
}

type fakeLease struct{ number uint64 }

func (f *fake) lock(context.Context, string) (lease, error) {
	n := f.grants.Add(1)
	time.Sleep(time.Microsecond) // as if it asked somebody
	return fakeLease{f.fence(n)}, f.err
}

func (f *fake) close(context.Context) error { return nil }

func (x fakeLease) Fence() uint64               { return x.number }
func (fakeLease) Release(context.Context) error { return nil }

// visitors run a fake in two goroutines, and return what was seen of it.
func visitors(t *testing.T, f *fake) faults {
	t.Helper()
	r := virtual(t, 2, time.Millisecond, func(*traffic) locker { return f })
	return r.faults
}

func grows(n uint64) uint64 { return n }

func TestALockThatWorksHasNoFaults(t *testing.T) {
	t.Parallel()
	if f := visitors(t, &fake{fence: grows}); !f.none() {
		t.Error(&f)
	}
}

func TestAFenceThatDoesNotGrowIsSeen(t *testing.T) {
	t.Parallel()
	if f := visitors(t, &fake{fence: func(uint64) uint64 { return 7 }}); f.Fences == 0 {
		t.Error(&f)
	}
}

func TestACallThatFailsIsSeenAndItsErrorIsShown(t *testing.T) {
	t.Parallel()
	f := visitors(t, &fake{fence: grows, err: errors.New("no such luck")})
	if f.Failed == 0 || !strings.Contains(f.String(), "no such luck") {
		t.Error(&f)
	}
}

func TestTwoHoldersAtOnceAreSeen(t *testing.T) {
	t.Parallel()
	section, err := mapSection(filepath.Join(t.TempDir(), "section"), 2)
	backendtest.OK(t, err)
	t.Cleanup(func() { _ = section.close() })
	for what, steps := range map[string]struct {
		do   func(f *faults, p *place)
		want int
	}{
		"one after the other": {func(f *faults, p *place) { f.visit(p, 1, 0); f.visit(p, 2, 0) }, 0},
		"the second comes before the first goes": {func(f *faults, p *place) {
			f.enter(p, 1, 0)
			f.enter(p, 2, 0)
			f.leave(p, 1)
			f.leave(p, 2)
		}, 2},
		"somebody else has left for the first": {func(f *faults, p *place) {
			f.enter(p, 1, 0)
			f.leave(p, 2)
			f.leave(p, 1)
		}, 1},
	} {
		var f faults
		section.clear()
		if steps.do(&f, section.place(0)); f.Overlaps != steps.want {
			t.Errorf("%s: %s", what, &f)
		}
	}
}

func TestAnotherProcessIsSeenInTheSection(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "section")
	var maps [2]*section
	for i := range maps {
		var err error
		if maps[i], err = mapSection(path, 3); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = maps[i].close() })
	}
	var f faults
	f.enter(maps[0].place(2), 1, 5)
	f.enter(maps[1].place(1), 2, 4) // another name
	if !f.none() {
		t.Fatal(&f)
	}
	f.enter(maps[1].place(2), 2, 5)
	if f.Overlaps != 1 || f.Fences != 1 {
		t.Error(&f)
	}
	maps[1].clear()
	f = faults{}
	f.enter(maps[0].place(2), 1, 5) // a fence is remembered
	if f.Overlaps != 0 || f.Fences != 1 {
		t.Error(&f)
	}
}

func TestAKeyThatIsLeftBehindIsSeenAndOnlyOursFailsTheRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, of string
		sound   bool
	}{
		{"holdfast:left", holdfastName, false},
		{"bsm:left", "bsm 10 ms", true},
		{"left", "", true},
	} {
		b := quickBench(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil { // a round begins with an empty server
				b.server.admin.Set(ctx, c.key, "", 0)
				time.Sleep(time.Millisecond)
			}
		}()
		s, _ := scenarioNamed("pair")
		s.contestants = []string{holdfastName, "bsm 10 ms"}
		sound, err := b.run(t.Context(), []scenario{s}, func(o outcome) error {
			for _, r := range o.Results {
				if r.Contestant == c.of && r.Faults.Left != 1 || r.Contestant != c.of && !r.Faults.none() {
					t.Errorf("%s: %s: %s", c.key, r.Contestant, &r.Faults)
				}
			}
			return nil
		})
		cancel()
		<-done
		if err != nil || sound != c.sound {
			t.Errorf("%s: sound is %v, %v", c.key, sound, err)
		}
	}
}

func TestAWorkerThatEndsEarlyIsAFaultAndNotTheEndOfTheRun(t *testing.T) {
	t.Parallel()
	b := quickBench(t)
	s, _ := scenarioNamed("pair")
	s.contestants = []string{"nobody", floorName}
	s.goals = nil
	results, err := b.race(t.Context(), s)
	backendtest.OK(t, err)
	if f := results[0].Faults; f.Failed != 1 || results[0].Rounds[0] != nil {
		t.Error(&f)
	}
	if f := results[1].Faults; !f.none() || results[1].Rounds[0] == nil {
		t.Error(&f)
	}
}
