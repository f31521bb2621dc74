package memlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// faulty runs f in virtual time, with two processes on one Store.
func faulty(t *testing.T, f func(t *testing.T, s *memlock.Store, a, b *core.Locker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := memlock.New()
		var lockers [2]*core.Locker
		for i := range lockers {
			l, err := core.New(s)
			backendtest.OK(t, err)
			lockers[i] = l
		}
		f(t, s, lockers[0], lockers[1])
		for _, l := range lockers {
			if err := l.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
}

func acquired(t *testing.T, l *core.Locker) *core.Lease {
	t.Helper()
	x, err := l.TryAcquire(t.Context(), "name")
	backendtest.OK(t, err)
	return x
}

func released(t *testing.T, x *core.Lease) {
	t.Helper()
	if err := x.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func isLost(t *testing.T, err error, want core.Reason) {
	t.Helper()
	if lost, ok := errors.AsType[*core.LostError](err); !ok || lost.Reason != want {
		t.Errorf("%v; want a loss because %s", err, want)
	}
}

func TestALostNameIsFreeAndItsHolderLearnsOfItByARenewal(t *testing.T) {
	t.Parallel()
	faulty(t, func(t *testing.T, s *memlock.Store, a, b *core.Locker) {
		x := acquired(t, a)
		began := time.Now()
		waited := make(chan *core.Lease)
		go func() {
			y, err := b.Acquire(t.Context(), "name")
			if err != nil {
				t.Error(err)
			}
			waited <- y
		}()
		synctest.Wait()
		s.Lose("name")
		y := <-waited
		if took := time.Since(began); took > 0 {
			t.Errorf("who waits was told after %s", took)
		}
		<-x.Context().Done()
		isLost(t, x.Err(), core.ReasonTaken)
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("the holder learned of it after %s", took)
		}
		isLost(t, x.Release(t.Context()), core.ReasonTaken)
		released(t, y)
		s.Lose("nobody's")
	})
}

func TestAStolenNameIsHeldByAThiefWithANewerFence(t *testing.T) {
	t.Parallel()
	faulty(t, func(t *testing.T, s *memlock.Store, a, b *core.Locker) {
		x := acquired(t, a)
		stolen := time.Now()
		fence := s.Steal("name")
		if fence <= x.Fence() {
			t.Errorf("fence %d after %d", fence, x.Fence())
		}
		select {
		case <-x.Context().Done():
		case <-time.After(4 * time.Second):
			t.Error("the holder does not learn of it")
		}
		isLost(t, x.Err(), core.ReasonTaken)
		isLost(t, x.Release(t.Context()), core.ReasonTaken)
		if _, err := b.TryAcquire(t.Context(), "name"); !errors.Is(err, core.ErrHeld) {
			t.Errorf("%v", err)
		}
		y, err := b.Acquire(t.Context(), "name")
		backendtest.OK(t, err)
		if took := time.Since(stolen); took < memlock.StolenFor || took > memlock.StolenFor+time.Second || y.Fence() <= fence {
			t.Errorf("fence %d after %d, after %s", y.Fence(), fence, took)
		}
		released(t, y)
		s.Steal("name")
		s.Lose("name")
		released(t, acquired(t, b))
	})
}

func TestAServiceThatIsDownExecutesNothingAndKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	faulty(t, func(t *testing.T, s *memlock.Store, a, b *core.Locker) {
		x := acquired(t, a)
		s.SetDown(true)
		if _, err := b.TryAcquire(t.Context(), "name"); !errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrHeld) {
			t.Errorf("acquire: %v", err)
		}
		time.Sleep(5 * time.Second)
		if err := x.Err(); err != nil {
			t.Errorf("its holder: %v", err)
		}
		s.SetDown(false)
		if _, err := b.TryAcquire(t.Context(), "name"); !errors.Is(err, core.ErrHeld) {
			t.Errorf("acquire: %v", err)
		}
		time.Sleep(time.Minute) // renewed again
		released(t, x)

		x = acquired(t, a)
		s.SetDown(true)
		<-x.Context().Done()
		isLost(t, x.Err(), core.ReasonUnreachable)
		s.SetDown(false)
		isLost(t, x.Release(t.Context()), core.ReasonUnreachable)
	})
}

func TestADelayIsOnTheWayToTheService(t *testing.T) {
	t.Parallel()
	faulty(t, func(t *testing.T, s *memlock.Store, a, b *core.Locker) {
		s.SetDelay(time.Second / 2) // within what a first attempt has
		began := time.Now()
		x := acquired(t, a)
		if took := time.Since(began); took != time.Second/2 {
			t.Errorf("took %s", took)
		}
		s.SetDelay(time.Hour)
		if _, err := b.TryAcquire(t.Context(), "name"); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		s.SetDelay(0)
		time.Sleep(3 * time.Second) // for a renewal that is on its way yet
		released(t, x)
	})
}

func TestADroppedReplyIsOfACallThatWasExecuted(t *testing.T) {
	t.Parallel()
	faulty(t, func(t *testing.T, s *memlock.Store, a, b *core.Locker) {
		s.DropReplies(1)
		x := acquired(t, a) // it is asked again, with the same token
		s.DropReplies(1)
		released(t, x)
		released(t, acquired(t, b))

		s.DropReplies(100)
		if _, err := a.TryAcquire(t.Context(), "name"); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		if _, err := b.TryAcquire(t.Context(), "name"); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		s.DropReplies(0)
		time.Sleep(10 * time.Second)
		released(t, acquired(t, b)) // nothing is left
	})
}
