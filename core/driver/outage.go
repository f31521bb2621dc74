package driver

import (
	"errors"
	"io"
	"net"
	"os"
)

// CannotAnswer says whether err, of any method, means that nobody can get an answer now:
// [ErrCannotAnswer], a dial that failed, a connection that broke, or time that ran out. Under
// core.OnUnavailable(core.LocalOnly) it is what work goes on without the service for, so it
// is never true of what the service has said about a name or about the caller: a refusal, a
// wrong type, a missing permission, a reply that makes no sense. Of those, and of all that
// it does not know, it says no.
//
// A time-out is the service's only if the caller's context stands: core looks at that first.
func CannotAnswer(err error) bool {
	if err == nil || errors.Is(err, ErrNotOwner) {
		return false
	}
	if errors.Is(err, ErrCannotAnswer) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*os.SyscallError](err); ok { // as clients that write to sockets by themselves return it
		return true
	}
	slow, ok := errors.AsType[net.Error](err)
	return ok && slow.Timeout()
}
