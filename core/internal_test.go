package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
)

func TestTheDefaultLabelFitsAndIsText(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text string
		n    int
		want string
	}{{"words", 5, "words"}, {"words", 4, "w…"}, {"ööö", 4, "…"}} {
		if got := cutText(row.text, row.n); got != row.want {
			t.Errorf("%q, not %q", got, row.want)
		}
	}
	for _, operation := range []string{strings.Repeat("x", 200), strings.Repeat("é", 99), strings.Repeat("\x80", 99), "\x80", strings.Repeat("\x00", 300)} {
		got := labelOf(thisProcess(), operation)
		if len(got) > maxDefaultLabel || !utf8.ValidString(got) || checkText("label", got, maxLabel) != nil {
			t.Errorf("%q", got)
		}
	}
}

// Templates that somebody makes from requests would be more and more lines.
func TestTheLogKeepsSoManyLinesInMindAndNoMore(t *testing.T) {
	t.Parallel()
	b := &operatorLog{logger: slog.New(slog.DiscardHandler)}
	for i := range maxEvents + 1 {
		b.warn(Event{Template: strconv.Itoa(i)}, "text")
	}
	if n := len(b.lines); n > maxEvents {
		t.Errorf("%d lines", n)
	}
}

// Events of two calls may come in another order than they happened.
func TestAnAnswerFromBeforeAnOutageDoesNotEndIt(t *testing.T) {
	t.Parallel()
	b, now := &operatorLog{logger: slog.New(slog.DiscardHandler)}, time.Now()
	b.observe(Event{Kind: EventRenewed, At: now, Err: &unavailableError{"renew", "name", errNoAnswer}})
	b.observe(Event{Kind: EventRenewed, At: now.Add(-time.Microsecond)})
	if !b.told {
		t.Error("it is over")
	}
}

// The errors are those of go-redis, pgx, go-sql-driver/mysql, redlock and core, from servers that
// were frozen, killed, out of reach, or would not.
func TestTheLogClaimsNoMoreThanIsKnown(t *testing.T) {
	t.Parallel()
	slow := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	for want, errs := range map[string][]error{
		"it did not answer in time": {
			slow, os.ErrDeadlineExceeded, fmt.Errorf("timeout: %w", slow), errNoAnswer, opaque(call.ErrNoAnswer), opaque(context.Canceled), errLate,
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
