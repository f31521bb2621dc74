package memlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// What the faults do to owners and to the queue is in the suite, which makes its foreign values and its outages by them. This is what
// their documentation says beyond that.

func claim(token string) driver.Claim {
	return driver.Claim{Name: "name", Token: token, TTL: time.Hour}
}

// took fails the test unless it is so long since then.
func took(t *testing.T, began time.Time, want time.Duration) {
	t.Helper()
	if d := time.Since(began); d != want {
		t.Errorf("it took %s, not %s", d, want)
	}
}

// acquires asks for the name by a token, for so long.
type acquires func(token string, patience time.Duration) error

var documentedFaults = map[string]func(t *testing.T, s *Store, acquire acquires){
	"a lost name goes to the first of the queue at once": func(t *testing.T, s *Store, _ acquires) {
		began, waited := time.Now(), make(chan error)
		go func() { _, err := s.Wait(t.Context(), claim("waits")); waited <- err }()
		synctest.Wait()
		s.Lose("name")
		backendtest.OK(t, <-waited)
		took(t, began, 0)
		s.Lose("nobody's")
	},
	"a thief has the name for its time or until it is lost": func(t *testing.T, s *Store, acquire acquires) {
		stolen := time.Now()
		fence := s.Steal("name")
		g, err := s.Wait(t.Context(), claim("next"))
		backendtest.OK(t, err)
		took(t, stolen, StolenFor)
		backendtest.Grows(t, g.Fence, fence)
		s.Steal("name")
		backendtest.IsHeld(t, acquire("another", time.Second))
		s.Lose("name")
		backendtest.OK(t, acquire("another", time.Second))
	},
	"a service that is down executes nothing and keeps what it has": func(t *testing.T, s *Store, acquire acquires) {
		s.SetDown(true)
		for _, err := range []error{acquire("other", time.Second), s.Release(t.Context(), claim("mine"))} {
			if m := driver.Explain(err); !m.Nobody || m.Kind != driver.NotDone {
				t.Errorf("%v", err)
			}
		}
		s.SetDown(false)
		backendtest.IsHeld(t, acquire("other", time.Second))
		backendtest.OK(t, s.Release(t.Context(), claim("mine")))
	},
	"a delay is on the way to the service": func(t *testing.T, s *Store, acquire acquires) {
		s.SetDelay(time.Second / 2)
		began := time.Now()
		backendtest.OK(t, s.Release(t.Context(), claim("mine")))
		took(t, began, time.Second/2)
		s.SetDelay(time.Hour)
		backendtest.Is(t, acquire("late", time.Second), context.DeadlineExceeded)
		s.SetDelay(0)
		backendtest.OK(t, acquire("other", time.Second)) // the late one was not executed
	},
	"a dropped reply is of a call that was executed": func(t *testing.T, s *Store, acquire acquires) {
		s.DropReplies(1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		backendtest.Is(t, s.Release(ctx, claim("mine")), context.DeadlineExceeded)
		backendtest.OK(t, acquire("other", time.Second)) // it was released, and one reply was lost
		s.DropReplies(100)
		backendtest.Is(t, acquire("other", time.Second), context.DeadlineExceeded)
		s.DropReplies(0)
		backendtest.OK(t, acquire("other", time.Second))
	},
}

// In virtual time, on a Store where mine owns the name for an hour.
func TestTheFaultsDoWhatTheyAreDocumentedToDo(t *testing.T) {
	t.Parallel()
	for what, test := range documentedFaults {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := New()
				acquire := func(token string, patience time.Duration) error {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					_, err := s.Acquire(ctx, claim(token))
					return err
				}
				backendtest.OK(t, acquire("mine", time.Second))
				test(t, s, acquire)
			})
		})
	}
}
