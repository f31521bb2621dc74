package main

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// slow grants after a while, or never.
type slow struct {
	after   time.Duration
	traffic *traffic
}

func (s *slow) lock(ctx context.Context, _ string) (lease, error) {
	select {
	case <-time.After(s.after):
		s.traffic.counter("grant").Add(1)
		return fakeLease{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *slow) close(context.Context) error { return nil }

// virtual runs a loop in virtual time, on names of its own for each goroutine.
func virtual(t *testing.T, goroutines int, length time.Duration, open func(*traffic) locker) *report {
	t.Helper()
	section, err := mapSection(filepath.Join(t.TempDir(), "section"), goroutines)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = section.close() }()
	r := &report{}
	synctest.Test(t, func(t *testing.T) {
		l := &loop{report: r, ctx: t.Context(), goroutines: goroutines}
		e := &env{task: task{Length: length}, section: section, traffic: newTraffic()}
		e.locks = open(e.traffic)
		if err := l.measure(e); err != nil {
			t.Error(err)
		}
	})
	return r
}

// waiters are three that want slow grants for a second.
func waiters(t *testing.T, after time.Duration) *report {
	t.Helper()
	return virtual(t, 3, time.Second, func(traffic *traffic) locker { return &slow{after, traffic} })
}

func TestAGrantAfterTheEndIsAWaitAndNoAcquisition(t *testing.T) {
	t.Parallel()
	r := waiters(t, 700*time.Millisecond)
	if !slices.Equal(r.Turns, []int{1, 1, 1}) || len(r.Waits) != 6 || slices.Max(r.Waits) != 700*time.Millisecond || !r.none() {
		t.Errorf("%+v", r)
	}
}

func TestOnlyCommandsBeforeTheEndCount(t *testing.T) {
	t.Parallel()
	if r := waiters(t, 400*time.Millisecond); r.Sent["grant"] != 6 || len(r.Waits) != 9 {
		t.Errorf("%+v", r)
	}
}

func TestAWaiterThatHangsIsAFaultAndNotTheEndOfTheRun(t *testing.T) {
	t.Parallel()
	if r := waiters(t, time.Hour); r.Failed != 3 || r.Note != errHung.Error() || !slices.Equal(r.Turns, []int{0, 0, 0}) {
		t.Errorf("%+v", r)
	}
}
