package core

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// A suspended machine: its timers stand still, and when it resumes, the other clocks have
// moved on.
func TestAfterAResumeNoContextGoesOn(t *testing.T) {
	t.Parallel()
	for what, move := range map[string]func(wall, slept *atomic.Int64){
		"wall clock":            func(wall, _ *atomic.Int64) { wall.Add(int64(time.Hour)) },
		"wall and boot clock":   func(wall, slept *atomic.Int64) { wall.Add(int64(time.Hour)); slept.Add(int64(time.Hour)) },
		"boot clock, wall back": func(wall, slept *atomic.Int64) { wall.Add(-int64(time.Hour)); slept.Add(int64(time.Hour)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			locks, err := New(memlock.New())
			if err != nil {
				t.Fatal(err)
			}
			var wall, slept atomic.Int64
			locks.engine.clock = clock.Skewed(
				func() time.Duration { return time.Duration(wall.Load()) },
				func() time.Duration { return time.Duration(slept.Load()) })
			var leases []*Lease
			for _, name := range []string{"a", "b", "c"} {
				x, err := locks.Acquire(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				leases = append(leases, x)
			}
			time.Sleep(time.Second)
			contexts := []context.Context{leases[0].Context(), leases[1].Context(), leases[2].Context()}
			move(&wall, &slept)
			if err := leases[0].Err(); !errors.Is(err, ErrLost) {
				t.Errorf("%s: Err says %v at once", what, err)
			}
			time.Sleep(lookEvery)
			synctest.Wait()
			for _, ctx := range contexts {
				if !errors.Is(context.Cause(ctx), ErrLost) {
					t.Errorf("%s: a context goes on", what)
				}
			}
			if err := locks.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
