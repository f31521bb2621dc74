package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Acquire implements driver.Driver.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	keys := []string{s.lockKey(c.Name), s.fences.key(c.Name)}
	if c.Dedup > 0 {
		keys = append(keys, s.doneKey(c))
	}
	reply, err := s.run(ctx, acquireScript, keys, owner(c)+c.Label, c.TTL.Milliseconds())
	if err != nil {
		return driver.Grant{}, err
	}
	switch reply := reply.(type) {
	case string:
		fence, err := strconv.ParseUint(reply, 10, 53)
		return driver.Grant{Fence: fence}, err
	case []any:
		return driver.Grant{}, refusal(reply)
	default:
		return driver.Grant{}, fmt.Errorf("redislock: unknown reply %T to an acquire", reply)
	}
}

// refusal reads {label} of a marker, or {label, remaining} of an owner.
func refusal(reply []any) error {
	if len(reply) == 0 {
		return fmt.Errorf("redislock: empty reply to an acquire")
	}
	label, _ := reply[0].(string)
	if len(reply) == 1 {
		return &driver.Done{Label: label}
	}
	ms, _ := reply[1].(int64) // negative for a foreign key without a TTL
	return &driver.Held{Label: label, Remaining: time.Duration(max(0, ms)) * time.Millisecond}
}

// Renew implements driver.Driver.
func (s *Store) Renew(ctx context.Context, claims []driver.Claim) []error {
	keys := make([]string, len(claims))
	args := make([]any, 0, 2*len(claims))
	for i, c := range claims {
		keys[i] = s.lockKey(c.Name)
		args = append(args, owner(c), c.TTL.Milliseconds())
	}
	errs := make([]error, len(claims))
	reply, err := s.run(ctx, renewScript, keys, args...)
	answers, ok := reply.([]any)
	if err == nil && (!ok || len(answers) != len(claims)) {
		err = fmt.Errorf("redislock: unknown reply %T to a renewal", reply)
	}
	for i := range errs {
		if err != nil {
			errs[i] = err
		} else {
			errs[i] = renewal(answers[i])
		}
	}
	return errs
}

func renewal(answer any) error {
	switch answer := answer.(type) {
	case int64:
		if answer == 1 {
			return nil
		}
		return driver.ErrNotOwner
	case string:
		return fmt.Errorf("redislock: renewal: %s", answer)
	default:
		return fmt.Errorf("redislock: unknown answer %T to a renewal", answer)
	}
}

// Release implements driver.Driver.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	keys := []string{s.lockKey(c.Name)}
	args := []any{owner(c) + c.Label, s.channel(c.Name)}
	if c.Done {
		keys = append(keys, s.doneKey(c))
		args = append(args, c.Label, c.Dedup.Milliseconds())
	}
	reply, err := s.run(ctx, releaseScript, keys, args...)
	if err != nil {
		return err
	}
	switch reply {
	case int64(1):
		return nil
	case int64(0):
		return driver.ErrNotOwner
	default:
		return fmt.Errorf("redislock: unknown reply %T to a release", reply)
	}
}

// Pauses between looks at a name that a foreign client holds: its release tells nobody.
const (
	firstPoll = 25 * time.Millisecond
	lastPoll  = time.Second
)

// Wait implements driver.Queuer.
func (s *Store) Wait(ctx context.Context, c driver.Claim) error {
	freed, leave, err := s.hub.listen(ctx, s.channel(c.Name))
	if err != nil {
		return err
	}
	defer leave()
	for poll := firstPoll; ; poll = min(2*poll, lastPoll) {
		value, err := s.get(ctx, s.lockKey(c.Name))
		mine := owner(c)
		if err != nil || value == "" || strings.HasPrefix(value, mine) {
			return err
		}
		var again <-chan time.Time
		if foreign := len(value) < len(mine) || value[len(mine)-1] != magic[0]; foreign {
			again = time.After(poll)
		}
		select {
		case <-freed:
			return nil
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
