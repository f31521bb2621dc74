package redislock

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// once is a command that go-redis sends exactly once. A client that sends an acquire again
// by itself would report our own lock as somebody else's.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// run sends a script by its hash, and whole if the server does not know it: that one
// answer proves that nothing was executed.
func (s *Store) run(ctx context.Context, sc script, keys []string, args ...any) (any, error) {
	line := make([]any, 3, 3+len(keys)+len(args))
	line[0], line[1], line[2] = "evalsha", sc.sha, len(keys)
	for _, key := range keys {
		line = append(line, key)
	}
	line = append(line, args...)
	reply, err := s.send(ctx, line)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		line[0], line[1] = "eval", sc.source
		reply, err = s.send(ctx, line)
	}
	return reply, classify(err)
}

func (s *Store) send(ctx context.Context, line []any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, errors.Join(driver.ErrNotSent, err)
	}
	cmd := redis.NewCmd(ctx, line...)
	cmd.SetFirstKeyPos(3)
	_ = s.rdb.Process(ctx, once{cmd}) // the same error as below
	return cmd.Result()
}

// classify marks the errors after which the server has certainly not executed anything.
//
// An error that the server answers belongs to them: each script writes what counts last,
// or, in a release, first, and what fails before that has changed nothing.
func classify(err error) error {
	if err == nil || errors.Is(err, driver.ErrNotSent) {
		return err
	}
	dial, ok := errors.AsType[*net.OpError](err)
	if ok && dial.Op == "dial" ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed) {
		return &notSent{err}
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		return &notSent{err}
	}
	return err
}

// notSent is driver.ErrNotSent with the client's error, whose text it keeps.
type notSent struct{ error }

func (e *notSent) Unwrap() []error { return []error{driver.ErrNotSent, e.error} }
