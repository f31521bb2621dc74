package redislock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// TxStore is a lock service on a Redis that forbids scripting. It keeps locks by WATCH, MULTI and
// EXEC. Make one with [NewTx]. It implements driver.Driver, and any number of goroutines may use it.
type TxStore struct{ base }

var (
	_ driver.Driver = (*TxStore)(nil)

	_ inspect.Inspector       = (*TxStore)(nil)
	_ inspect.MarkerInspector = (*TxStore)(nil)
)

// NewTx is [New] without scripts. A [Store] is faster and does more. Here, an acquire, a release and
// each renewal take three round trips. There is no queue between processes: waiters look again and
// again, between 25 ms and a second apart, and the first to find the name free gets it. Goroutines of
// a process cannot pass the name on without a round trip. There are no readers, semaphores and
// hand-offs, and no WithMinHold.
//
// In Cluster, a name cannot be used from when its keys have moved to another node until the whole slot has. A
// lease that is not renewed for so long ends.
//
// Fences are counted for each name, in a key beside its lock that expires ten minutes after its last
// use. They begin with the server's clock, as those of scripts do. All clients of a prefix must be of
// the same kind: with scripts, or without.
func NewTx(rdb redis.UniversalClient, opts ...Option) *TxStore { return &TxStore{newBase(rdb, opts)} }

// fenceLife is how long a name's fence counter outlasts its last use. After that, the server's clock
// replaces it, unless the clock steps back.
const fenceLife = 10 * time.Minute

// Capabilities implements driver.Driver.
func (s *TxStore) Capabilities() driver.Capabilities {
	can := s.capabilities()
	can.Fence, can.Dedup = true, true
	return can
}

// Acquire implements driver.Driver. If others change the same keys meanwhile, nothing was executed,
// and it tries again until ctx ends.
func (s *TxStore) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	heard, err := s.inquire(ctx, c.Name, false)
	if err != nil {
		return driver.Grant{}, err
	}
	g, err := s.acquire(ctx, c)
	s.settle(heard, err)
	return g, err
}

func (s *TxStore) acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	lock, counter, marker := s.lockKey(c.Name), s.sideKey(c.Name, "fence"), s.doneKey(c)
	keys := []string{lock, counter}
	if c.Dedup > 0 {
		keys = append(keys, marker)
	}
	err = s.transact(ctx, func(t *transaction) error {
		var value, last, done *redis.StringCmd
		var left *redis.DurationCmd
		var clock *redis.TimeCmd
		err := t.read(func(pipe redis.Pipeliner) {
			value, left = pipe.Get(ctx, lock), pipe.PTTL(ctx, lock)
			last, clock = pipe.Get(ctx, counter), pipe.Time(ctx)
			if c.Dedup > 0 {
				done = pipe.Get(ctx, marker)
			}
		})
		if err != nil {
			return err
		}
		if done != nil && done.Err() == nil {
			return &driver.Duplicate{Label: done.Val()}
		}
		if value.Err() == nil && !strings.HasPrefix(value.Val(), owner(c)) {
			return &driver.Held{Label: labelOf(value.Val(), len(c.Token)), Remaining: max(0, left.Val())}
		}
		fence, err := next(last.Val(), clock.Val())
		if err != nil {
			return err
		}
		set := []any{"set", lock, owned(c), "px", c.TTL.Milliseconds()}
		if value.Err() != nil {
			set = append(set, "nx") // if MULTI is not allowed, nothing watches the key
		}
		_, err = t.write([]any{"set", counter, fence, "px", fenceLife.Milliseconds()}, set)
		if err != nil {
			return err
		}
		g = driver.Grant{Fence: uint64(fence), Fences: 1} //nolint:gosec // G115: it counts up from the server's clock
		return t.acknowledged(s.replicas)
	}, keys...)
	if err != nil {
		return driver.Grant{}, err
	}
	return g, nil
}

// Wait implements driver.Driver. It polls.
func (s *TxStore) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return driver.Poll(ctx, c, s.Acquire)
}

// labelOf reads the label from a lock's value that begins with a token of n bytes. The label of a
// foreign value is "".
func labelOf(value string, n int) string {
	if len(value) <= n || value[n:n+1] != magic {
		return ""
	}
	return value[n+1:]
}

// Release implements driver.Driver. It tries again as [TxStore.Acquire] does.
func (s *TxStore) Release(ctx context.Context, c driver.Claim) error {
	lock := s.lockKey(c.Name)
	return s.transact(ctx, func(t *transaction) error {
		value, err := t.tx.Get(ctx, lock).Result()
		switch {
		case errors.Is(err, redis.Nil) || err == nil && !strings.HasPrefix(value, owner(c)):
			return driver.ErrNotOwner
		case err != nil:
			return err
		}
		commands := [][]any{{"del", lock}}
		if c.Dedup > 0 {
			commands = append(commands, []any{"set", s.doneKey(c), c.Label, "px", c.Dedup.Milliseconds()})
		}
		_, err = t.write(commands...)
		return err
	}, lock)
}

// Renew implements driver.Driver. Each claim is a transaction of its own, and up to eight run at the
// same time.
func (s *TxStore) Renew(ctx context.Context, claims []driver.Claim) []error {
	errs := make([]error, len(claims))
	few(len(claims), func(i int) { errs[i] = s.renew(ctx, claims[i]) })
	return errs
}

// few calls f for 0 to n-1, up to eight at the same time.
func few(n int, f func(i int)) {
	const together = 8
	var wg sync.WaitGroup
	for from := range min(together, n) {
		wg.Go(func() {
			for i := from; i < n; i += together {
				f(i)
			}
		})
	}
	wg.Wait()
}

func (s *TxStore) renew(ctx context.Context, c driver.Claim) error {
	lock := s.lockKey(c.Name)
	return s.transact(ctx, func(t *transaction) error {
		value, err := t.tx.Get(ctx, lock).Result()
		switch {
		case errors.Is(err, redis.Nil) || err == nil && !strings.HasPrefix(value, owner(c)):
			return driver.ErrNotOwner
		case err != nil || c.TTL == 0:
			return err
		}
		sent, err := t.write([]any{"pexpire", lock, c.TTL.Milliseconds()})
		if err == nil && sent[0].Val() != int64(1) {
			return driver.ErrNotOwner
		}
		if err != nil {
			return err
		}
		return t.acknowledged(s.replicas)
	}, lock)
}
