package redislock

import (
	"crypto/tls"
	"errors"
	"net"
	"regexp"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// classify marks the errors after which the server has certainly not executed anything.
//
// An error that the server answers is one of them. Each script writes what counts last or, in a
// release, first. A failure before that write has changed nothing, and a failure after it is
// caught in the script. What a proxy answers in the server's place is none: the server may have
// executed the command.
func classify(err error) error {
	if err == nil || errors.Is(err, driver.ErrNotSent) {
		return err
	}
	dial, ok := errors.AsType[*net.OpError](err)
	if ok && dial.Op == "dial" ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed) {
		return unanswered(driver.NotSent(pooled(err)))
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		if explained := explain(err); driver.Reason(explained) != "" || !byProxy.MatchString(err.Error()) {
			return unanswered(driver.NotSent(explained))
		}
		return driver.Unavailable(driver.Because(err, "a proxy did not reach the server, or got no answer from it"))
	}
	return unanswered(strange(err))
}

// byProxy matches what proxies answer if they have no answer of the server's. Envoy says "upstream failure", whether
// it has sent the command or not; others say how their connection ended.
var byProxy = regexp.MustCompile(`(?i)upstream|backend|time(d )?-?out|connection (refused|reset|close|aborted)|` +
	`disconnect|broken pipe|host is down|no route to host|unreachable|server closed`)

// strange explains what no Redis says. Such a server will not become one.
func strange(err error) error {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return driver.Refused(driver.Because(err, "the server does not speak TLS, and TLSConfig of the client is set"))
	}
	if notRedis.MatchString(err.Error()) {
		return driver.Refused(driver.Because(err, "what answers there is not Redis but another service, so check the address"))
	}
	return err
}

// notRedis matches go-redis' words for the first line of an HTTP, SSH, mail or memcached server.
var notRedis = regexp.MustCompile(`redis: (can't parse|invalid reply)[^"]{0,40}"(HTTP/\d|SSH-\d|220[ -]|ERROR\b|CLIENT_ERROR|SERVER_ERROR)`)

// says tells whether the server's error begins with these words. go-redis' function allocates also if there is no error,
// and this one is asked after every command.
func says(err error, words string) bool { return err != nil && redis.HasErrorPrefix(err, words) }

// classify does the same for an error of c's script.
func (c *command) classify(err error) error { return classify(c.script.explained(err)) }

// unanswered marks, for driver.CannotAnswer, the errors that say that nobody gets an answer now:
// the server cannot serve, or the pool has no connection to spare. driver.CannotAnswer knows the
// errors of the network by itself. OOM, NOREPLICAS, MISCONF, NOAUTH and NOPERM are not marked:
// the server could answer, and somebody has decided that it must not.
func unanswered(err error) error {
	err = hungUp(err)
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) ||
		redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsMasterDownError(err) || redis.IsClusterDownError(err) ||
		isMoving(err) || says(err, "max number of clients") || says(err, "BUSY ") {
		return driver.Unavailable(err)
	}
	return err
}
