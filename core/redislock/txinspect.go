package redislock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// Inspect implements inspect.Inspector. It is one transaction that only reads. The fence is known while the
// name's counter is there: fenceLife from the grant on.
func (s *TxStore) Inspect(ctx context.Context, name string) (info inspect.LeaseInfo, err error) {
	err = s.transact(ctx, func(t *transaction) error {
		sent, err := t.write(s.questions(name)...)
		if err == nil {
			info, err = txInfo(name, sent)
		}
		return err
	}, s.lockKey(name))
	return info, err
}

// questions are the commands by whose answers txInfo knows a name. None is answered with nil.
func (s *TxStore) questions(name string) [][]any {
	lock := s.lockKey(name)
	return [][]any{{"mget", lock, s.sideKey(name, "fence")}, {"pttl", lock}, {"time"}}
}

// tokenLen is the length of core's tokens.
const tokenLen = 22

// txInfo reads the answers to the value and the counter, the TTL and the time.
func txInfo(name string, sent []*redis.Cmd) (inspect.LeaseInfo, error) {
	values, err := sent[0].Slice()
	left, errLeft := sent[1].Int64()
	clock, errClock := sent[2].Int64Slice()
	if err := errors.Join(err, errLeft, errClock); err != nil || len(values) != 2 || len(clock) != 2 {
		return inspect.LeaseInfo{}, errors.Join(errNoInfo, err)
	}
	const noKey = -2
	info := inspect.LeaseInfo{Name: name, Held: left != noKey, Remaining: max(0, duration(left))}
	value, _ := values[0].(string) // a key of another type has none
	switch {
	case !info.Held:
	case len(value) <= tokenLen || value[tokenLen:tokenLen+1] != magic:
		info.Foreign, info.Kind = true, inspect.HoldForeign
	default:
		info.Kind, info.Handle, info.Label = inspect.HoldExclusive, txHandle(value), labelOf(value, tokenLen)
		digits, _ := values[1].(string)
		info.Fence, _ = strconv.ParseUint(digits, 10, 53) // of this very grant: each writes both keys together
		info.HeldFor = sinceFence(info.Fence, clock[0]*1000+clock[1]/1000)
	}
	return info, nil
}

// txHandle is what is shown of the token in a value.
func txHandle(value string) string {
	sum := sha256.Sum256([]byte(value[:tokenLen]))
	const bytes = 8
	return hex.EncodeToString(sum[:bytes])
}

// Leases implements inspect.Inspector. It walks through the server's keys as [Store.Leases] does, and then
// takes a transaction for each name, up to eight at the same time.
func (s *TxStore) Leases(ctx context.Context, prefix string) iter.Seq2[inspect.LeaseInfo, error] {
	return s.leases(ctx, prefix, func(ctx context.Context, names []string) ([]inspect.LeaseInfo, error) {
		infos, errs := make([]inspect.LeaseInfo, len(names)), make([]error, len(names))
		few(len(names), func(i int) { infos[i], errs[i] = s.Inspect(ctx, names[i]) })
		return infos, errors.Join(errs...)
	})
}

// Evict implements inspect.Inspector. It tries again as [TxStore.Acquire] does.
func (s *TxStore) Evict(ctx context.Context, name, handle string) error {
	lock := s.lockKey(name)
	return s.transact(ctx, func(t *transaction) error {
		var sent []*redis.Cmd
		err := t.read(func(pipe redis.Pipeliner) {
			for _, line := range s.questions(name) {
				sent = append(sent, pipe.Do(ctx, line...))
			}
		})
		if err != nil {
			return err
		}
		info, err := txInfo(name, sent)
		switch {
		case err != nil:
			return err
		case !info.Held:
			return driver.ErrNotOwner
		case handle == "" || handle != info.Handle:
			return &driver.Held{Label: info.Label, Remaining: info.Remaining}
		}
		_, err = t.write([]any{"del", lock})
		return err
	}, lock, s.sideKey(name, "fence"))
}
