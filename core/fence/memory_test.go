package fence_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/core/fence"
)

const key = "order:1"

func nothing() error { return nil }

func wantStale(t *testing.T, err error, mine, seen uint64) {
	t.Helper()
	stale, ok := errors.AsType[*fence.StaleError](err)
	if want := (fence.StaleError{Key: key, Fence: mine, Seen: seen}); !ok || *stale != want || !errors.Is(err, fence.ErrStale) {
		t.Errorf("%v; want %v", err, &want)
	}
}

func TestMemoryRefusesTheLateWrite(t *testing.T) {
	t.Parallel()
	var guard fence.Memory
	failed := errors.New("no")
	if err := guard.Do(key, 10, nothing); err != nil {
		t.Fatal(err)
	}
	if err := guard.Do(key, 12, func() error { return failed }); err != failed { //nolint:errorlint // as it is
		t.Fatalf("%v; want %v", err, failed)
	}
	if err := guard.Do(key, 12, nothing); err != nil { // a holder may write twice
		t.Error(err)
	}
	wantStale(t, guard.Do(key, 11, func() error {
		t.Error("the late write ran")
		return nil
	}), 11, 12)
	if err := guard.Do("order:2", 1, nothing); err != nil {
		t.Errorf("another key: %v", err)
	}
}

func TestMemoryLetsNobodyInBetweenTheCheckAndTheWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var guard fence.Memory
		letGo, done, went := make(chan struct{}), make(chan error, 2), false
		go func() { done <- guard.Do(key, 10, func() error { <-letGo; return nil }) }()
		synctest.Wait()
		go func() { done <- guard.Do(key, 12, func() error { went = true; return nil }) }()
		if err := guard.Do("order:2", 1, nothing); err != nil || went { // does not wait
			t.Errorf("%v; two writes at once: %t", err, went)
		}
		close(letGo)
		if err := errors.Join(<-done, <-done); err != nil || !went {
			t.Errorf("%v, went: %t", err, went)
		}
	})
}

func TestMemoryOutlivesAPanic(t *testing.T) {
	t.Parallel()
	var guard fence.Memory
	defer func() {
		if v := recover(); v != "work" {
			t.Errorf("recovered %v: the panic did not pass through", v)
		}
		if err := guard.Do(key, 10, nothing); err != nil {
			t.Error(err)
		}
	}()
	_ = guard.Do(key, 10, func() error { panic("work") })
}

func TestWhatMemoryForgetsItStillRefuses(t *testing.T) {
	t.Parallel()
	var guard fence.Memory
	for i := range uint64(100) {
		if err := guard.Do(fmt.Sprint("order:", i), 10+i, nothing); err != nil {
			t.Fatal(err)
		}
	}
	if n := guard.Forget(60); n != 50 {
		t.Errorf("%d keys forgotten; want 50", n)
	}
	wantStale(t, guard.Do(key, 59, nothing), 59, 60) // it had seen 11
	if n := guard.Forget(60); n != 0 {
		t.Errorf("what was refused is remembered: %d keys", n)
	}
	if err := guard.Do(key, 60, nothing); err != nil {
		t.Error(err)
	}
	if err := guard.Do("order:99", 108, nothing); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a key that was not forgotten: %v", err)
	}
	if n := guard.Forget(5); n != 0 { // the floor does not fall
		t.Errorf("%d keys forgotten", n)
	}
	wantStale(t, guard.Do(key, 59, nothing), 59, 60)
}

func TestMemoryForgetsNothingThatIsBeingWritten(t *testing.T) {
	t.Parallel()
	var guard fence.Memory
	err := guard.Do(key, 10, func() error {
		if n := guard.Forget(20); n != 0 {
			t.Errorf("%d keys forgotten", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	wantStale(t, guard.Do(key, 10, nothing), 10, 20)
}

// TestWritersInAHurryEndInOrder: what is written under growing fences grows, whatever the
// order in which the writers come, and whatever is forgotten meanwhile.
func TestWritersInAHurryEndInOrder(t *testing.T) {
	t.Parallel()
	var guard fence.Memory
	var written [4]uint64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 2000 {
				f, at := 1+rand.Uint64N(100_000), rand.IntN(len(written))
				err := guard.Do(fmt.Sprint("order:", at), f, func() error {
					if written[at] > f {
						t.Errorf("%d comes after %d", f, written[at])
					}
					written[at] = f
					return nil
				})
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
				if f < 1000 {
					guard.Forget(f)
				}
			}
		})
	}
	all.Wait()
}
