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
// or, in a release, first, what fails before that has changed nothing, and what fails after it
// is caught in the script.
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

// classify does so for an error that a script came to.
func (c *command) classify(err error) error { return classify(c.script.explained(err)) }

// unanswered marks the errors that say that nobody gets an answer now, for driver.CannotAnswer,
// which knows those of the network by itself: a server that cannot serve, and a pool without a
// connection to spare. Where the server could but must not, by OOM, NOREPLICAS, MISCONF, NOAUTH
// or NOPERM, somebody has decided that.
func unanswered(err error) error {
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) ||
		redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsMasterDownError(err) || redis.IsClusterDownError(err) ||
		redis.IsTryAgainError(err) || redis.IsMaxClientsError(err) || redis.HasErrorPrefix(err, "BUSY ") {
		return driver.Unavailable(err)
	}
	return err
}
