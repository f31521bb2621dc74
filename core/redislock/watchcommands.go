package redislock

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// watchAcquire is [Store.Acquire] without scripts.
func (s *Store) watchAcquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
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
			return &driver.Done{Label: done.Val()}
		}
		if value.Err() == nil && !strings.HasPrefix(value.Val(), owner(c)) {
			return &driver.Held{Label: labelOf(value.Val(), len(c.Token)), Remaining: max(0, left.Val())}
		}
		fence, err := next(last.Val(), clock.Val())
		if err != nil {
			return err
		}
		// The lock is written last: what fails before that has granted nothing.
		_, err = t.write(
			[]any{"set", counter, fence, "px", fenceLife.Milliseconds()},
			[]any{"set", lock, owned(c), "px", c.TTL.Milliseconds()},
		)
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

// labelOf reads the label of a lock's value that begins with a token of n bytes, "" of a
// foreign one.
func labelOf(value string, n int) string {
	if len(value) <= n || value[n:n+1] != magic {
		return ""
	}
	return value[n+1:]
}

// watchRelease is [Store.Release] without scripts.
func (s *Store) watchRelease(ctx context.Context, c driver.Claim) error {
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
		if c.Done {
			commands = append(commands, []any{"set", s.doneKey(c), c.Label, "px", c.Dedup.Milliseconds()})
		}
		_, err = t.write(commands...)
		return err
	}, lock)
}

// watchRenew is [Store.Renew] without scripts: claims by themselves, several at a time.
func (s *Store) watchRenew(ctx context.Context, claims []driver.Claim) []error {
	const together = 8
	errs := make([]error, len(claims))
	var wg sync.WaitGroup
	for from := range min(together, len(claims)) {
		wg.Go(func() {
			for i := from; i < len(claims); i += together {
				errs[i] = s.watchRenewOne(ctx, claims[i])
			}
		})
	}
	wg.Wait()
	return errs
}

func (s *Store) watchRenewOne(ctx context.Context, c driver.Claim) error {
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

// watchYield lets others in: without a line, nobody knows who comes first.
func (s *Store) watchYield(ctx context.Context, old, next driver.Claim) (g driver.Grant, errNext, errOld error) {
	switch errOld = s.watchRelease(ctx, old); {
	case errors.Is(errOld, driver.ErrNotOwner):
		return g, driver.ErrNotSent, errOld
	case errOld != nil:
		return g, errOld, errOld
	}
	g, errNext = s.watchAcquire(ctx, next)
	return g, errNext, nil
}
