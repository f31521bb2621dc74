package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
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

func newShare(t *testing.T) (*share, *wire) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // nothing is dialed
	t.Cleanup(func() { _ = rdb.Close() })
	w := &wire{}
	rdb.AddHook(w)
	return &share{store: &Store{base: base{rdb: rdb}}}, w
}

func (s *share) atRest(t *testing.T) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights != 0 || len(s.waiting) != 0 {
		t.Errorf("%d flights, %d waiting in the end", s.flights, len(s.waiting))
	}
}

// unmerged is a command of n parts that goes as it is.
func unmerged(n int) command { return command{script: rankScript, keys: 1, parts: make([]string, n)} }

func TestALoneCallerSendsAtOnceAndOthersShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, w := newShare(t)
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
		want := []int{1, 1, 1, 5, 5} // each flight takes its part
		if got := w.sizes(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("round trips of %v commands, want %v", got, want)
		}
		s.atRest(t)
	})
}

func TestAStuckRoundTripHoldsOthersUpForAQuarterOfASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, w := newShare(t)
		thaw := make(chan struct{})
		w.hold = func(trip int) {
			if trip < maxFlights {
				<-thaw
			}
		}
		var wg sync.WaitGroup
		for range maxFlights {
			wg.Go(func() { _, _ = s.do(t.Context(), unmerged(1)) })
		}
		synctest.Wait()
		for range 3 {
			began := time.Now()
			_, err := s.do(t.Context(), unmerged(1))
			if took := time.Since(began); err != nil || took > stuck {
				t.Errorf("%v after %s", err, took)
			}
		}
		close(thaw)
		wg.Wait()
		synctest.Wait()
		s.atRest(t)
	})
}

func TestACallerWhoLeavesSaysWhetherItsCommandWasSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, w := newShare(t)
		w.hold = func(int) { time.Sleep(stuck * 4 / 5) }
		var wg sync.WaitGroup
		for range maxFlights {
			wg.Go(func() { _, _ = s.do(t.Context(), unmerged(1)) })
		}
		synctest.Wait()
		leave := func(after time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			_, err := s.do(ctx, unmerged(1))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("left after %s: %v", after, err)
			}
			return err
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
		if err := leave(stuck / 5); !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("nothing was sent, and yet %v", err)
		}
		if err := leave(stuck); errors.Is(err, driver.ErrNotSent) {
			t.Errorf("it was sent, and yet %v", err)
		}
		for range cap(stays) {
			if err := <-stays; err != nil { // one has shared its round trip with the one that left
				t.Error(err)
			}
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
	synctest.Test(t, func(t *testing.T) {
		s, w := newShare(t)
		var wg sync.WaitGroup
		for range maxFlights + 3*maxShare {
			wg.Go(func() { _, _ = s.do(t.Context(), unmerged(1)) })
		}
		wg.Wait()
		for _, n := range w.sizes() {
			if n > maxShare {
				t.Errorf("%d commands in one round trip", n)
			}
		}
	})
}

// While one flight is on its way, the server works for another. So none takes all that there are, unless
// they are very few, and no third one begins until two cannot carry all.
func TestTwoFlightsShareWhatThereIs(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ callers, most, flights int }{{4, 2, 2}, {64, 32, 2}, {fewShared * maxShare, maxShare, 2}, {maxFlights * maxShare, maxShare, 3}} {
		synctest.Test(t, func(t *testing.T) {
			s, w := newShare(t)
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
			for range maxFlights {
				wg.Go(func() { _, _ = s.do(t.Context(), unmerged(1)) })
			}
			synctest.Wait()
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
			for _, n := range w.sizes() {
				if n > row.most {
					t.Errorf("%d callers: %d commands in one round trip", row.callers, n)
				}
			}
			s.atRest(t)
			if s.shared != 0 || s.riding != 0 {
				t.Errorf("%d shared flights with %d commands in the end", s.shared, s.riding)
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
