package core

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
)

// The errors are those of go-redis, pgx, go-sql-driver/mysql, redlock and core, from servers that
// were frozen, killed, out of reach, or would not.
func TestTheLogClaimsNoMoreThanIsKnown(t *testing.T) {
	t.Parallel()
	slow := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	for want, errs := range map[string][]error{
		"it did not answer in time": {
			slow, os.ErrDeadlineExceeded, fmt.Errorf("timeout: %w", slow), errNoAnswer, opaque(call.ErrNoAnswer), errLate, errOver,
		},
		"no connection to it could be had": {
			errors.Join(driver.ErrNotSent, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}),
			errors.Join(driver.ErrNotSent, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}),
		},
		"it refused the command, or no connection to it could be had": {
			errors.Join(driver.ErrNotSent, driver.ErrCannotAnswer, errors.New("redis: connection pool timeout")),
			errors.Join(driver.ErrNotSent, errors.New("NOAUTH")),
		},
		"say it":                       {driver.NotSent(driver.Refused(driver.Because(errors.New("NOAUTH"), "say it")))},
		"it cannot answer anybody now": {fmt.Errorf("redlock: no quorum: %w", driver.ErrCannotAnswer)},
		"the connection broke, or the answer was an error or made no sense": {
			io.EOF, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, errors.New("invalid connection"),
			errors.New(`ERROR: relation "holdfast" does not exist (SQLSTATE 42P01)`), errors.New("unknown reply"),
		},
	} {
		for _, err := range errs {
			if got := unavailability(&unavailableError{"acquire", "name", err}); got != want {
				t.Errorf("%v: logged as %q, not %q", err, got, want)
			}
		}
	}
}
