package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// wire is a go-redis hook in the place of a server: a round trip takes a second, or what is
// said by hold, and every command is answered with the number of arguments it has.
type wire struct {
	mu    sync.Mutex // protects the fields below
	trips [][]redis.Cmder
	hold  func(trip int)
}

func (w *wire) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
}

func (w *wire) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w.trip(ctx, []redis.Cmder{cmd})
		return nil
	}
}

func (w *wire) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		w.trip(ctx, cmds)
		return nil
	}
}

func (w *wire) trip(ctx context.Context, cmds []redis.Cmder) {
	w.mu.Lock()
	n := len(w.trips)
	w.trips = append(w.trips, cmds)
	hold := w.hold
	w.mu.Unlock()
	if hold != nil {
		hold(n)
	} else {
		time.Sleep(time.Second)
	}
	for _, cmd := range cmds {
		cmd.(private).SetVal(int64(len(cmd.Args())))
		cmd.SetErr(ctx.Err())
	}
}

// sizes says how many commands each round trip has carried.
func (w *wire) sizes() (sizes []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, cmds := range w.trips {
		sizes = append(sizes, len(cmds))
	}
	return sizes
}

// sharing runs f in a bubble, which ends with nothing under way.
func sharing(t *testing.T, f func(t *testing.T, s *share, w *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // nothing is dialed
		defer func() { _ = rdb.Close() }()
		w := &wire{}
		rdb.AddHook(w)
		s := &share{store: &Store{base: base{rdb: rdb}}}
		f(t, s, w)
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.flights != 0 || len(s.waiting) != 0 || s.shared != 0 || s.riding != 0 {
			t.Errorf("%d flights, %d waiting, %d shared flights with %d commands in the end", s.flights, len(s.waiting), s.shared, s.riding)
		}
	})
}

// sends has n callers send one command each.
func (s *share) sends(ctx context.Context, wg *sync.WaitGroup, n int) {
	for range n {
		wg.Go(func() { _, _ = s.do(ctx, unmerged(1)) })
	}
	synctest.Wait()
}

// unmerged is a command of n parts that goes as it is.
func unmerged(n int) command { return command{script: rankScript, keys: 1, parts: make([]string, n)} }

func TestALoneCallerSendsAtOnceAndOthersShare(t *testing.T) {
	t.Parallel()
	sharing(t, func(t *testing.T, s *share, w *wire) {
		var wg sync.WaitGroup
		began := time.Now()
		for i := range maxFlights + 10 {
			wg.Go(func() {
				reply, err := s.do(t.Context(), unmerged(i+1))
				if err != nil || reply != int64(3+i+1) {
					t.Errorf("command %d: %v, %v", i, reply, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if took := time.Since(began); took != time.Second+stuck && took != 2*time.Second {
			t.Errorf("took %s", took)
		}
		if got := w.sizes(); fmt.Sprint(got) != "[1 1 1 5 5]" { // each flight takes its part
			t.Errorf("round trips of %v commands", got)
		}
	})
}

func TestAStuckRoundTripHoldsOthersUpForAQuarterOfASecond(t *testing.T) {
	t.Parallel()
	sharing(t, func(t *testing.T, s *share, w *wire) {
		thaw := make(chan struct{})
		w.hold = func(trip int) {
			if trip < maxFlights {
				<-thaw
			}
		}
		var wg sync.WaitGroup
		s.sends(t.Context(), &wg, maxFlights)
		for range 3 {
			began := time.Now()
			_, err := s.do(t.Context(), unmerged(1))
			if took := time.Since(began); err != nil || took > stuck {
				t.Errorf("%v after %s", err, took)
			}
		}
		close(thaw)
		wg.Wait()
	})
}

func TestACallerWhoLeavesSaysWhetherItsCommandWasSent(t *testing.T) {
	t.Parallel()
	sharing(t, func(t *testing.T, s *share, w *wire) {
		w.hold = func(int) { time.Sleep(stuck * 4 / 5) }
		var wg sync.WaitGroup
		s.sends(t.Context(), &wg, maxFlights)
		leave := func(after time.Duration, sent bool) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			_, err := s.do(ctx, unmerged(1))
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrNotSent) == sent {
				t.Errorf("left after %s: %v", after, err)
			}
		}
		stays := make(chan error, 3)
		for range cap(stays) {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := s.do(ctx, unmerged(1))
				stays <- err
			}()
		}
		synctest.Wait()
		leave(stuck/5, false)
		leave(stuck, true)
		for range cap(stays) {
			noError(t, <-stays) // one has shared its round trip with the one that left
		}
		wg.Wait()
		synctest.Wait()
		if got := w.sizes(); fmt.Sprint(got[maxFlights:]) != "[2 2]" {
			t.Errorf("round trips of %v commands", got)
		}
	})
}

func TestARoundTripCarriesNoMoreThanItsShare(t *testing.T) {
	t.Parallel()
	sharing(t, func(t *testing.T, s *share, w *wire) {
		var wg sync.WaitGroup
		s.sends(t.Context(), &wg, maxFlights+3*maxShare)
		wg.Wait()
		if most := slices.Max(w.sizes()); most > maxShare {
			t.Errorf("%d commands in one round trip", most)
		}
	})
}

// While one flight is on its way, the server works for another. So none takes all that there are, unless
// they are very few, and no third one begins until two cannot carry all.
func TestTwoFlightsShareWhatThereIs(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ callers, most, flights int }{{4, 2, 2}, {64, 32, 2}, {fewShared * maxShare, maxShare, 2}, {maxFlights * maxShare, maxShare, 3}} {
		sharing(t, func(t *testing.T, s *share, w *wire) {
			thaw := make(chan struct{})
			w.hold = func(trip int) {
				if trip < maxFlights { // until all have gathered
					<-thaw
					return
				}
				s.mu.Lock()
				shared := s.shared
				s.mu.Unlock()
				if shared > row.flights {
					t.Errorf("%d callers: %d flights", row.callers, shared)
				}
				time.Sleep(stuck / 2)
			}
			var wg sync.WaitGroup
			s.sends(t.Context(), &wg, maxFlights)
			for range row.callers {
				wg.Go(func() {
					for range 20 {
						_, _ = s.do(t.Context(), unmerged(1))
					}
				})
			}
			synctest.Wait()
			close(thaw)
			wg.Wait()
			if most := slices.Max(w.sizes()); most > row.most {
				t.Errorf("%d callers: %d commands in one round trip", row.callers, most)
			}
		})
	}
}

func TestASharedRoundTripHasNobodysValues(t *testing.T) {
	t.Parallel()
	type key struct{}
	ctx, cancel := together([]*parcel{{ctx: context.WithValue(t.Context(), key{}, "one caller's")}})
	defer cancel()
	if got := ctx.Value(key{}); got != nil {
		t.Errorf("it has %q, which may be used for something else by now", got)
	}
}
