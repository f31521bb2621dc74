package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a lock library that grants after a while, or never, or fails.
type fake struct {
	after time.Duration
	err   error
	sent  *atomic.Int64
}

type fakeLease struct{}

func (f *fake) lock(ctx context.Context, _ string) (lease, error) {
	select {
	case <-time.After(f.after):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.sent.Add(1)
	return fakeLease{}, f.err
}

func (f *fake) close(context.Context) error { return nil }

func (fakeLease) Release(context.Context) error { return nil }

// looped is what three goroutines with a name each see of a fake in a second of virtual time.
func looped(t *testing.T, f *fake) *report {
	t.Helper()
	e := &env{task: task{Length: time.Second, Size: size{N: 3}}, report: &report{Sent: map[string]int64{}}, to: 3, traffic: new(traffic)}
	f.sent = &e.traffic.sent
	e.lockers = []locker{f}
	synctest.Test(t, func(t *testing.T) {
		e.ctx = t.Context()
		loop{}.measure(e)
	})
	return e.report
}

func TestALoopSeesACallThatFails(t *testing.T) {
	t.Parallel()
	if r := looped(t, &fake{after: time.Millisecond}); r.faults != (faults{}) {
		t.Errorf("one that works: %s", r)
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
