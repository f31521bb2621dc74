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

// service answers each command in capitals, in a time that the test says. Each of seven round trips takes some odd longer than the one before.
type service struct {
	share.Share[string, string]

	takes, odd time.Duration

	mu     sync.Mutex // protects the fields below
	alone  []string
	trips  [][]string
	flying int // how many of those are under way
	most   int // and were at once
}

func newService(takes time.Duration) *service {
	s := &service{takes: takes}
	s.Apart = func(a, b string) bool { return a[0] == b[0] }
	s.Alone = func(ctx context.Context, c string) (string, error) {
		s.mu.Lock()
		s.alone = append(s.alone, c)
		s.mu.Unlock()
		return strings.ToUpper(c), sleep(ctx, s.takes)
	}
	s.Send = func(ctx context.Context, batch parts) {
		var all []string
		for _, p := range batch {
			all = append(all, p.Command)
		}
		s.mu.Lock()
		s.trips = append(s.trips, all)
		takes := s.takes + time.Duration(len(s.trips)%7)*s.odd
		s.flying++
		s.most = max(s.most, s.flying)
		s.mu.Unlock()
		err := sleep(ctx, takes)
		for _, p := range batch {
			p.Answer, p.Said, p.Err = strings.ToUpper(p.Command), err == nil && p.Command != "unsaid", err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flying--
	}
	return s
}

// now is how many round trips are under way that commands share.
func (s *service) now() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flying
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// busy has as many commands under way as may be before others share a round trip.
func (s *service) busy(ctx context.Context) {
	for i := range share.MaxAlone {
		go func() { _, _ = s.Do(ctx, fmt.Sprint(i)) }()
	}
	synctest.Wait()
}

func TestFewGoAloneAndManyTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(10 * time.Millisecond)
		s.busy(t.Context())
		var wg sync.WaitGroup
		for _, c := range []string{"ask", "better", "unsaid"} {
			wg.Go(func() {
				answer, err := s.Do(t.Context(), c)
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
		if len(s.alone) != share.MaxAlone+1 || s.alone[share.MaxAlone] != "unsaid" {
			t.Errorf("alone: %v", s.alone)
		}
	})
}

func TestWhatCannotGoWithWhatWaitsGoesAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(10 * time.Millisecond)
		s.busy(t.Context())
		for _, c := range []string{"a1", "b1", "a2"} {
			go func() { _, _ = s.Do(t.Context(), c) }()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if fmt.Sprint(s.trips) != "[[a1 b1]]" || s.alone[share.MaxAlone] != "a2" {
			t.Errorf("together %v, alone %v", s.trips, s.alone)
		}
	})
}

// While one flight is on its way, the service works for another. So none takes all that there are, unless they are very few.
func TestFlightsShareWhatThereIs(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ callers, flights, most int }{
		{1, 1, 1}, {4, 2, 2}, {64, 2, 32}, {64, 1, 64}, {share.Most + 2, 1, share.Most}, {2 * share.Most, 2, share.Most}, {3 * share.Most, 2, share.Most}, {3 * share.Most, 3, share.Most},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newService(share.Stuck / 2)
			s.Apart, s.Flights = nil, func(int, time.Duration) int { return row.flights }
			s.busy(t.Context())
			var wg sync.WaitGroup
			for range row.callers {
				wg.Go(func() {
					for range 20 {
						if answer, err := s.Do(t.Context(), "a"); err != nil || answer != "A" {
							t.Errorf("%+v: %s, %v", row, answer, err)
						}
					}
				})
			}
			wg.Wait()
			for _, trip := range s.trips {
				if len(trip) > row.most || s.most > row.flights {
					t.Fatalf("%+v: %d commands in one round trip, %d at once", row, len(trip), s.most)
				}
			}
		})
	}
}

// A service that is far away, or near again, is known as that after two windows of round trips at most; a busy one is not far away.
func TestFlightsFollowTheShortestRoundTripOfLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const near, far, slow = time.Millisecond, 10 * time.Millisecond, share.Stuck / 2
		s := newService(near)
		var told time.Duration
		s.Apart, s.Flights = nil, func(_ int, trip time.Duration) int { told = trip; return max(1, int(trip/near)) }
		for i, row := range []struct {
			takes time.Duration
			trips int
			want  time.Duration
		}{{near, 2, near}, {far, 1, near}, {far, 130, far}, {slow, 2, far}, {near, 20, near}, {far, 130, far}, {near, 130, near}} {
			s.takes = row.takes
			most := 0
			for range row.trips {
				s.busy(t.Context())
				for range 40 {
					go func() { _, _ = s.Do(t.Context(), "a") }()
				}
				synctest.Wait()
				time.Sleep(row.takes)
				synctest.Wait()
				most = s.now()
				time.Sleep(time.Second)
				synctest.Wait()
			}
			if want := int(row.want / near); told != row.want || most != want {
				t.Errorf("row %d: told %s, %d flights, and not %s, %d", i, told, most, row.want, want)
			}
		}
	})
}

func TestFlightsThatAreTooManyEndUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(10 * time.Millisecond)
		s.odd = time.Millisecond // so that they do not come back all at once
		var flights atomic.Int64
		flights.Store(8)
		s.Apart, s.Flights = nil, func(int, time.Duration) int { return int(flights.Load()) }
		s.busy(t.Context())
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for range 50 {
					_, _ = s.Do(t.Context(), "a")
				}
			})
		}
		for _, want := range []int64{8, 2, 8, 1} {
			flights.Store(want)
			time.Sleep(95 * time.Millisecond)
			synctest.Wait()
			if n := s.now(); n != int(want) {
				t.Errorf("%d flights, and not %d", n, want)
			}
		}
		wg.Wait() // nobody is forgotten
	})
}

// Otherwise it would go on after them, for as long as the server is away.
func TestARoundTripEndsWithTheLastOfItsCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(time.Hour)
		busy, end := context.WithCancel(t.Context())
		s.busy(busy)
		leave := make([]context.CancelFunc, 2)
		for i, c := range []string{"a", "b"} {
			ctx, cancel := context.WithCancel(t.Context())
			leave[i] = cancel
			go func() {
				if _, err := s.Do(ctx, c); !errors.Is(err, share.ErrLeft) || errors.Is(err, driver.ErrNotSent) {
					t.Error(err)
				}
			}()
		}
		time.Sleep(share.Stuck + time.Millisecond) // those under way count no more
		for i, leave := range leave {
			leave()
			synctest.Wait()
			if n := s.now(); n != 1-i {
				t.Errorf("after %d have left: %d under way", i+1, n)
			}
		}
		end()
	})
}

func TestWhoLeavesBeforeItsCommandIsSentSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(10 * time.Millisecond)
		s.busy(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		if _, err := s.Do(ctx, "a"); !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(s.trips) > 0 {
			t.Errorf("%v were sent", s.trips)
		}
	})
}

// A round trip that gets no answer holds up others once, and only for a while.
func TestStuckRoundTripsHoldOthersUpForAQuarterOfASecondOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(time.Hour)
		s.busy(t.Context())
		for _, alone := range []bool{true, false} { // which are stuck
			began := time.Now()
			if !alone {
				s.busy(t.Context())
				go func() { _, _ = s.Do(t.Context(), "stuck") }()
				time.Sleep(share.Stuck)
				synctest.Wait()
				began = time.Now()
			}
			s.takes = 0
			for i := range 3 {
				synctest.Wait() // nobody is under way who could take it along
				answer, err := s.Do(t.Context(), "a")
				if took := time.Since(began); err != nil || answer != "A" || took != share.Stuck {
					t.Errorf("alone %t, %d: %s, %v after %s", alone, i, answer, err, took)
				}
			}
			s.takes = time.Hour
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestASharedRoundTripHasNobodysValues(t *testing.T) {
	t.Parallel()
	type key struct{}
	own := context.WithValue(t.Context(), key{}, "one caller's")
	bound, cancel := context.WithTimeout(own, time.Hour)
	defer cancel()
	for _, ctx := range []context.Context{own, bound} {
		together, cancel := share.Outlive([]context.Context{ctx}, func(c context.Context) context.Context { return c })
		if got := together.Value(key{}); got != nil {
			t.Errorf("it has %q, which may be used for something else by now", got)
		}
		cancel()
	}
}
