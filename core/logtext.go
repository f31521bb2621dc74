package core

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
)

// origin returns where the code is that has panicked, or has ended its goroutine. It is called by a
// deferred function.
func origin() string {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for ended := false; ; {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if ended && !inRuntime || !more {
			return fmt.Sprintf("%s:%d", frame.Function, frame.Line)
		}
		ended = ended || inRuntime
	}
}

// because explains a reason to an operator.
func (r Reason) because() string {
	switch r {
	case ReasonExpired:
		return "its time was over before it was renewed: the process or machine stood still, or it is not renewed at all"
	case ReasonTaken:
		return "the lock service says that the name is not ours: it was deleted there, or lost in a failover"
	case ReasonUnreachable:
		return "the lock service did not answer any renewal until its time was over"
	case ReasonMaxHold:
		return "it was held for as long as WithMaxHold allows"
	default:
		return ""
	}
}

// unavailability is what an operator can learn from an error that matches ErrUnavailable, without
// its text: where to look. A backend may have said so itself, with driver.Because. The rest claims no
// more than what is known of the errors of every client.
func unavailability(err error) string {
	slow, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	why := driver.Reason(err)
	dial, isNet := errors.AsType[*net.OpError](err)
	switch {
	case why != "":
		return why
	case isNet && dial.Op == "dial":
		return "no connection to it could be had"
	case errors.Is(err, driver.ErrNotSent): // also a dial that takes too long
		return "it refused the command, or no connection to it could be had"
	case errors.Is(err, errNoAnswer), errors.Is(err, call.ErrNoAnswer), errors.Is(err, errLate), errors.Is(err, errOver),
		ok && slow.Timeout():
		return "it did not answer in time"
	case errors.Is(err, driver.ErrCannotAnswer):
		return "it cannot answer anybody now"
	default:
		return "the connection broke, or the answer was an error or made no sense"
	}
}

// errorType is the low-cardinality kind of an error.
func errorType(err error) string {
	if typed, ok := errors.AsType[interface {
		error
		ErrorType() string
	}](err); ok {
		return typed.ErrorType()
	}
	return "other"
}
