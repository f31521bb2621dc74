package share_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/share"
)

type parts = []*share.Part[string, string]

// service answers each command in capitals, in a time that the test says.
type service struct {
	share.Share[string, string]
	takes time.Duration

	mu    sync.Mutex // protects the fields below
	alone []string
	trips [][]string
}

func newService(takes time.Duration) *service {
	s := &service{takes: takes}
	s.Apart = func(a, b string) bool { return a[0] == b[0] }
	s.Send = func(ctx context.Context, batch parts) {
		var all []string
		for _, p := range batch {
			all = append(all, p.Command)
		}
		s.mu.Lock()
		s.trips = append(s.trips, all)
		s.mu.Unlock()
		err := s.sleep(ctx)
		for _, p := range batch {
			p.Answer, p.Said, p.Err = strings.ToUpper(p.Command), err == nil && p.Command != "unsaid", err
		}
	}
	return s
}

func (s *service) sleep(ctx context.Context) error {
	select {
	case <-time.After(s.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *service) ask(ctx context.Context, c string) (string, error) {
	return s.Do(ctx, c, func() (string, error) {
		s.mu.Lock()
		s.alone = append(s.alone, c)
		s.mu.Unlock()
		return strings.ToUpper(c), s.sleep(ctx)
	})
}

// busy has as many commands under way as may be before others share a round trip.
func (s *service) busy(t *testing.T) {
	t.Helper()
	for i := range share.MaxFlights {
		go func() { _, _ = s.ask(t.Context(), fmt.Sprint(i)) }()
	}
	synctest.Wait()
}

func TestFewGoAloneAndManyTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(10 * time.Millisecond)
		s.busy(t)
		var wg sync.WaitGroup
		for _, c := range []string{"ask", "better", "unsaid"} {
			wg.Go(func() {
				answer, err := s.ask(t.Context(), c)
				if want := strings.ToUpper(c); err != nil || answer != want {
					t.Errorf("%s: %s, %v", c, answer, err)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		slices.Sort(s.trips[0])
		if len(s.trips) != 1 || fmt.Sprint(s.trips[0]) != "[ask better unsaid]" {
			t.Errorf("together: %v", s.trips)
		}
		if len(s.alone) != share.MaxFlights+1 || s.alone[share.MaxFlights] != "unsaid" {
			t.Errorf("alone: %v", s.alone)
		}
	})
}

func TestWhatCannotGoWithWhatWaitsGoesAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(10 * time.Millisecond)
		s.busy(t)
		for _, c := range []string{"a1", "b1", "a2"} {
			go func() { _, _ = s.ask(t.Context(), c) }()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if fmt.Sprint(s.trips) != "[[a1 b1]]" || s.alone[share.MaxFlights] != "a2" {
			t.Errorf("together %v, alone %v", s.trips, s.alone)
		}
	})
}

func TestARoundTripHasABoundAndACrowdHasOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(10 * time.Millisecond)
		s.Apart, s.Crowd = func(string, string) bool { return false }, 6
		s.busy(t)
		began := time.Now()
		var wg sync.WaitGroup
		for range 2*share.Most + 1 {
			wg.Go(func() { _, _ = s.ask(t.Context(), "a") })
		}
		wg.Wait()
		synctest.Wait()
		if took := time.Since(began); len(s.trips) != 3 || len(s.trips[0]) != share.Most || took < 40*time.Millisecond {
			t.Errorf("%d round trips, %s", len(s.trips), took)
		}
	})
}

// Otherwise it would go on after them, for as long as the server is away.
func TestARoundTripEndsWithTheLastOfItsCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(time.Hour)
		var ended atomic.Bool
		send := s.Send
		s.Send = func(ctx context.Context, batch parts) { send(ctx, batch); ended.Store(true) }
		busy, end := context.WithCancel(t.Context())
		for i := range share.MaxFlights {
			go func() { _, _ = s.ask(busy, fmt.Sprint(i)) }()
		}
		synctest.Wait()
		leave := make([]context.CancelFunc, 2)
		for i, c := range []string{"a", "b"} {
			ctx, cancel := context.WithCancel(t.Context())
			leave[i] = cancel
			go func() {
				if _, err := s.ask(ctx, c); !errors.Is(err, share.ErrLeft) || errors.Is(err, driver.ErrNotSent) {
					t.Error(err)
				}
			}()
		}
		time.Sleep(share.Stuck + time.Millisecond) // those under way count no more
		for i, leave := range leave {
			leave()
			synctest.Wait()
			if ended.Load() != (i == 1) {
				t.Errorf("after %d have left: ended %t", i+1, ended.Load())
			}
		}
		end()
	})
}

func TestWhoLeavesBeforeItsCommandIsSentSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(10 * time.Millisecond)
		s.busy(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		if _, err := s.ask(ctx, "a"); !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(s.trips) > 0 {
			t.Errorf("%v were sent", s.trips)
		}
	})
}

// A round trip that gets no answer holds up only those that are in it.
func TestAStuckRoundTripHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(time.Hour)
		s.busy(t)
		s.takes = 0
		began := time.Now()
		if answer, err := s.ask(t.Context(), "a"); err != nil || answer != "A" || time.Since(began) != share.Stuck {
			t.Errorf("%s, %v after %s", answer, err, time.Since(began))
		}
		time.Sleep(time.Hour)
	})
}
