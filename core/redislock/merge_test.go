package redislock_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// crowd has many goroutines do the same, so that their commands are merged.
func crowd(n int, f func(i int)) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-begin
			f(i)
		})
	}
	close(begin)
	wg.Wait()
}

func claimOf(i int) driver.Claim {
	return driver.Claim{Name: fmt.Sprint("name-", i), Token: fmt.Sprintf("token-%016d", i), TTL: time.Minute, Label: "mine"}
}

// Merged commands answer as single ones do: each claim for itself.
func TestAnAnswerIsTheSameWhetherACommandWasMergedOrNot(t *testing.T) {
	t.Parallel()
	const n = 200
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	s := redislock.New(rdb, redislock.WithPrefix(share.Prefix))
	other := redislock.New(rdb, redislock.WithPrefix(share.Prefix))
	for i := range n {
		key := share.Prefix + claimOf(i).Name
		switch i % 5 {
		case 1: // somebody else's
			c := claimOf(i)
			c.Token, c.Label = fmt.Sprintf("other-%016d", i), "theirs"
			_, err := other.Acquire(t.Context(), c)
			ok(t, err)
		case 2: // foreign
			ok(t, rdb.Set(t.Context(), key, "x", time.Minute).Err())
		case 3: // poisoned
			ok(t, rdb.RPush(t.Context(), key, "x").Err())
		}
	}
	for _, again := range []string{"", "again: "} { // the second time, what we own is ours already
		var mu sync.Mutex
		fences := make(map[uint64]bool)
		crowd(n, func(i int) {
			g, err := s.Acquire(t.Context(), claimOf(i))
			held, isHeld := errors.AsType[*driver.Held](err)
			switch i % 5 {
			case 0, 4:
				mu.Lock()
				defer mu.Unlock()
				if err != nil || fences[g.Fence] || g.Fence < 1e15 {
					t.Errorf("%sfree: %v, %v", again, g, err)
				}
				fences[g.Fence] = true
			case 1:
				if !isHeld || held.Label != "theirs" || held.Remaining <= 0 {
					t.Errorf("%ssomebody else's: %v", again, err)
				}
			case 2:
				if !isHeld || held.Label != "" || held.Remaining <= 0 {
					t.Errorf("%sforeign: %v", again, err)
				}
			case 3:
				if !errors.Is(err, driver.ErrNotSent) || isHeld {
					t.Errorf("%spoisoned: %v", again, err)
				}
			}
		})
	}
	crowd(n, func(i int) {
		err := s.Release(t.Context(), claimOf(i))
		switch i % 5 {
		case 0, 4:
			if err != nil {
				t.Errorf("ours: %v", err)
			}
		case 3:
			if err == nil || errors.Is(err, driver.ErrNotOwner) {
				t.Errorf("poisoned: %v", err)
			}
		default:
			if !errors.Is(err, driver.ErrNotOwner) {
				t.Errorf("not ours: %v", err)
			}
		}
	})
	for i := range n {
		if exists := rdb.Exists(t.Context(), share.Prefix+claimOf(i).Name).Val() == 1; exists == (i%5 == 0 || i%5 == 4) {
			t.Errorf("name %d: exists: %t", i, exists)
		}
	}
}

// Two claims of one name in one call: only one is granted.
func TestOneCallGrantsANameOnce(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	s := redislock.New(rdb, redislock.WithPrefix(share.Prefix))
	var mu sync.Mutex
	granted := make(map[string]int)
	crowd(300, func(i int) {
		c := claimOf(i)
		c.Name = fmt.Sprint("name-", i%3)
		_, err := s.Acquire(t.Context(), c)
		if _, held := errors.AsType[*driver.Held](err); err != nil && !held {
			t.Error(err)
		}
		if err == nil {
			mu.Lock()
			granted[c.Name]++
			mu.Unlock()
		}
	})
	for i := range 3 {
		if n := granted[fmt.Sprint("name-", i)]; n != 1 {
			t.Errorf("name %d granted %d times", i, n)
		}
	}
}

// A merged release tells those who wait, and a merged acquire does not get in before them.
func TestMergedCommandsRespectTheLine(t *testing.T) {
	t.Parallel()
	const n = 100
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	s := redislock.New(rdb, redislock.WithPrefix(share.Prefix))
	waiting := redislock.New(rdb, redislock.WithPrefix(share.Prefix))
	defer func() { ok(t, waiting.Close(t.Context())) }()
	crowd(n, func(i int) {
		_, err := s.Acquire(t.Context(), claimOf(i))
		ok(t, err)
	})
	heard := make(chan error, n)
	next := func(i int) driver.Claim {
		c := claimOf(i)
		c.Token = fmt.Sprintf("next--%016d", i)
		return c
	}
	for i := range n {
		go func() {
			_, err := waiting.Wait(t.Context(), next(i))
			heard <- err
		}()
	}
	eventually(t, "all have lined up", func() bool {
		return len(rdb.Keys(t.Context(), "{"+share.Prefix+"*:line").Val()) == n
	})
	crowd(n, func(i int) { ok(t, s.Release(t.Context(), claimOf(i))) })
	for range n {
		if err := <-heard; err != nil {
			t.Error(err)
		}
	}
	crowd(n, func(i int) {
		if _, err := s.Acquire(t.Context(), claimOf(i)); err == nil {
			t.Error("got in before those who wait")
		}
	})
	crowd(n, func(i int) {
		_, err := waiting.Acquire(t.Context(), next(i))
		ok(t, err)
	})
}

func TestAMergedCommandSurvivesScriptFlush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := redislock.New(w.rdb)
	stop := make(chan struct{})
	var flusher sync.WaitGroup
	flusher.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				w.do(t, "script", "flush")
			}
		}
	})
	for range 20 {
		crowd(100, func(i int) {
			_, err := s.Acquire(t.Context(), claimOf(i))
			ok(t, err)
			ok(t, s.Release(t.Context(), claimOf(i)))
		})
	}
	close(stop)
	flusher.Wait()
}
