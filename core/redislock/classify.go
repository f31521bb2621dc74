package redislock

import (
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// classify marks the errors after which the server has certainly not executed anything.
//
// An error that the server answers is one of them. Each script writes what counts last or, in a
// release, first. A failure before that write has changed nothing, and a failure after it is
// caught in the script.
func classify(err error) error {
	if err == nil || errors.Is(err, driver.ErrNotSent) {
		return err
	}
	dial, ok := errors.AsType[*net.OpError](err)
	if ok && dial.Op == "dial" ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed) {
		return unanswered(driver.NotSent(err))
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		return unanswered(driver.NotSent(err))
	}
	return unanswered(err)
}

// classify does the same for an error of c's script.
func (c *command) classify(err error) error { return classify(c.script.explained(err)) }

// unanswered marks, for driver.CannotAnswer, the errors that say that nobody gets an answer now:
// the server cannot serve, or the pool has no connection to spare. driver.CannotAnswer knows the
// errors of the network by itself. OOM, NOREPLICAS, MISCONF, NOAUTH and NOPERM are not marked:
// the server could answer, and somebody has decided that it must not.
func unanswered(err error) error {
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) ||
		redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsMasterDownError(err) || redis.IsClusterDownError(err) ||
		redis.IsTryAgainError(err) || redis.IsMaxClientsError(err) || redis.HasErrorPrefix(err, "BUSY ") {
		return driver.Unavailable(err)
	}
	return err
}
