package bench

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// fake is a lock library that grants after a while, or never, and is broken in some way.
type fake struct {
	after  time.Duration
	fence  func(n uint64) uint64 // of the n-th grant; nil if it has none
	err    error
	grants atomic.Uint64
	sent   *atomic.Int64
}

type fakeLease struct{ number uint64 }

func (f *fake) lock(ctx context.Context, _ string) (lease, error) {
	select {
	case <-time.After(f.after):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n := f.grants.Add(1)
	f.sent.Add(1)
	if f.fence != nil {
		n = f.fence(n)
	}
	return fakeLease{n}, f.err
}

func (f *fake) close(context.Context) error { return nil }

func (x fakeLease) Fence() uint64               { return x.number }
func (fakeLease) Release(context.Context) error { return nil }

// looped is what three goroutines with a name each see of a fake in a second of virtual time.
func looped(t *testing.T, f *fake) *report {
	t.Helper()
	section, err := mapSection(filepath.Join(t.TempDir(), "section"), 3)
	backendtest.OK(t, err)
	defer section.close()
	e := &env{task: task{Length: time.Second, Size: size{N: 3}}, report: &report{Sent: map[string]int64{}}, to: 3, section: section, traffic: new(traffic)}
	f.sent = &e.traffic.sent
	e.lockers = []locker{f}
	synctest.Test(t, func(t *testing.T) {
		e.ctx = t.Context()
		loop{}.measure(e)
	})
	return e.report
}

func TestALoopSeesWhatALockDoesWrong(t *testing.T) {
	t.Parallel()
	if r := looped(t, &fake{after: time.Millisecond}); r.faults != (faults{}) {
		t.Errorf("one that works: %s", r)
	}
	if r := looped(t, &fake{after: time.Millisecond, fence: func(uint64) uint64 { return 7 }}); r.Fences == 0 {
		t.Errorf("a fence that does not grow: %s", r)
	}
	if r := looped(t, &fake{after: time.Millisecond, err: errors.New("no such luck")}); r.Failed == 0 || !strings.Contains(r.String(), "no such luck") {
		t.Errorf("a call that fails: %s", r)
	}
}

func TestALoopCountsUntilItsEnd(t *testing.T) {
	t.Parallel()
	// A grant after the end is a wait, and no acquisition.
	r := looped(t, &fake{after: 700 * time.Millisecond})
	if !slices.Equal(r.Turns, []int{1, 1, 1}) || len(r.Waits) != 6 || slices.Max(r.Waits) != 700*time.Millisecond || r.faults != (faults{}) {
		t.Errorf("%+v", r)
	}
	// Commands after the end do not count.
	if r := looped(t, &fake{after: 400 * time.Millisecond}); r.Sent["all"] != 6 || len(r.Waits) != 9 {
		t.Errorf("%+v", r)
	}
	// A waiter that hangs is a fault, and not the end of the run.
	if r := looped(t, &fake{after: time.Hour}); r.Failed != 3 || r.Note != errHung.Error() || !slices.Equal(r.Turns, []int{0, 0, 0}) {
		t.Errorf("%+v", r)
	}
}

func TestTwoHoldersAtOnceAreSeenInAnyProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "section")
	var maps [2]*section
	for i := range maps {
		var err error
		maps[i], err = mapSection(path, 3)
		backendtest.OK(t, err)
		t.Cleanup(maps[i].close)
	}
	mine, theirs := maps[0].place(2), maps[1].place(2)
	for what, steps := range map[string]struct {
		do   func(f *faults)
		want int
	}{
		"one after the other": {func(f *faults) { f.visit(mine, 1, 0); f.visit(theirs, 2, 0) }, 0},
		"another name":        {func(f *faults) { f.enter(mine, 1, 0); f.visit(maps[1].place(1), 2, 0) }, 0},
		"the second comes before the first goes": {func(f *faults) {
			f.enter(mine, 1, 0)
			f.enter(theirs, 2, 0)
			f.leave(mine, 1)
			f.leave(theirs, 2)
		}, 2},
		"somebody else has left for the first": {func(f *faults) {
			f.enter(mine, 1, 0)
			f.leave(theirs, 2)
			f.leave(mine, 1)
		}, 1},
	} {
		var f faults
		maps[0].clear()
		if steps.do(&f); f.Overlaps != steps.want {
			t.Errorf("%s: %s", what, f)
		}
	}
	var f faults
	f.visit(mine, 1, 5)
	maps[1].clear()
	if f.visit(theirs, 2, 5); f.Fences != 1 {
		t.Errorf("a fence is not remembered: %s", f)
	}
}

func TestAKeyThatIsLeftBehindIsSeenAndOnlyOursFailsTheRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, of string
		sound   bool
	}{
		{"holdfast:left", holdfastName, false},
		{"bsm:left", "bsm", true},
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
		s.rows = contest(s.rows[0].size, "bsm")
		results := b.race(s)
		cancel()
		<-done
		for _, r := range results {
			if r.name == c.of && r.faults.Left != 1 || r.name != c.of && r.faults != (faults{}) {
				t.Errorf("%s: %s: %s", c.key, r.name, r.faults)
			}
		}
		if sound(results) != c.sound {
			t.Errorf("%s: sound is %t", c.key, !c.sound)
		}
	}
}

func TestAWorkerThatEndsEarlyIsAFaultAndNotTheEndOfTheRun(t *testing.T) {
	t.Parallel()
	s, _ := scenarioNamed("pair")
	s.rows = contest(s.rows[0].size, floorName)
	s.rows[0].contestant = "nobody"
	results := quickBench(t).race(s)
	if f := results[0].faults; f.Failed != 1 || results[0].rounds[0] != nil {
		t.Error(f)
	}
	if f := results[1].faults; f != (faults{}) || results[1].rounds[0] == nil {
		t.Error(f)
	}
}
