package redislock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// TxStore is a lock service on a Redis where scripting is forbidden: it keeps locks by WATCH, MULTI
// and EXEC. It implements driver.Driver; see [NewTx].
type TxStore struct{ base }

var (
	_ driver.Driver    = (*TxStore)(nil)
	_ driver.Validator = (*TxStore)(nil)
)

// NewTx is [New] without scripts. A [Store] is faster and does more: here an acquire, a release and
// each renewal take three round trips, and there is no line: who waits looks again and again, between
// 25 ms and a second apart, and whoever comes first gets the name. Turns inside a process, which take
// no round trip, do not exist either, nor readers, semaphores, hand-offs, WithMinHold and Inspect.
//
// Fences are counted for each name, beside its lock, in a key that expires ten minutes after
// its last use; they begin with the server's clock, as those of scripts do. All clients of a
// prefix must be of the same kind: with scripts, or without.
func NewTx(rdb redis.UniversalClient, opts ...Option) *TxStore { return &TxStore{newBase(rdb, opts)} }

// fenceLife is how long a name's fence counter outlasts its use. The server's clock replaces
// it, unless that steps back.
const fenceLife = 10 * time.Minute

// Capabilities implements driver.Driver.
func (s *TxStore) Capabilities() driver.Capabilities {
	return driver.Capabilities{Backend: "redis", Punctual: s.punctual, Fence: true, Dedup: true}
}

// Acquire implements driver.Driver.
func (s *TxStore) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
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
			set = append(set, "nx") // as where MULTI is not allowed, nothing watches the key
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

// labelOf reads the label of a lock's value that begins with a token of n bytes, "" of a
// foreign one.
func labelOf(value string, n int) string {
	if len(value) <= n || value[n:n+1] != magic {
		return ""
	}
	return value[n+1:]
}

// Release implements driver.Driver.
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
		if c.Mark {
			commands = append(commands, []any{"set", s.doneKey(c), c.Label, "px", c.Dedup.Milliseconds()})
		}
		_, err = t.write(commands...)
		return err
	}, lock)
}

// Renew implements driver.Driver: claims by themselves, several at a time.
func (s *TxStore) Renew(ctx context.Context, claims []driver.Claim) []error {
	const together = 8
	errs := make([]error, len(claims))
	var wg sync.WaitGroup
	for from := range min(together, len(claims)) {
		wg.Go(func() {
			for i := from; i < len(claims); i += together {
				errs[i] = s.renew(ctx, claims[i])
			}
		})
	}
	wg.Wait()
	return errs
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
