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

// virtual runs three goroutines for a second of virtual time.
func virtual(t *testing.T, after time.Duration) *report {
	t.Helper()
	section, err := mapSection(filepath.Join(t.TempDir(), "section"), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = section.close() }()
	r := &report{}
	synctest.Test(t, func(t *testing.T) {
		l := &loop{report: r, ctx: t.Context(), goroutines: 3}
		e := &env{task: task{Length: time.Second}, section: section, traffic: newTraffic()}
		e.locks = &slow{after, e.traffic}
		if err := l.measure(e); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestAGrantAfterTheEndIsAWaitAndNoAcquisition(t *testing.T) {
	t.Parallel()
	r := virtual(t, 700*time.Millisecond)
	if !slices.Equal(r.Turns, []int{1, 1, 1}) || len(r.Waits) != 6 || slices.Max(r.Waits) != 700*time.Millisecond || !r.none() {
		t.Errorf("%+v", r)
	}
}

func TestOnlyCommandsBeforeTheEndCount(t *testing.T) {
	t.Parallel()
	if r := virtual(t, 400*time.Millisecond); r.Sent["grant"] != 6 || len(r.Waits) != 9 {
		t.Errorf("%+v", r)
	}
}

func TestAWaiterThatHangsIsAFaultAndNotTheEndOfTheRun(t *testing.T) {
	t.Parallel()
	if r := virtual(t, time.Hour); r.Failed != 3 || r.Note != errHung.Error() || !slices.Equal(r.Turns, []int{0, 0, 0}) {
		t.Errorf("%+v", r)
	}
}
