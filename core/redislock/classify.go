package redislock

import (
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

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
