package driver

import (
	"errors"
	"io"
	"net"
	"os"
)

// CannotAnswer says whether err, of any method, means that nobody can get an answer now. That
// is true for [ErrCannotAnswer], a failed dial, a broken connection, and a timeout.
//
// With core.OnUnavailable(core.LocalOnly), work then goes on without the service. So it is false
// for everything that the service has said about a name or about the caller: a refusal, a wrong
// type, a missing permission, a reply that makes no sense. It is also false for every error that
// it does not know.
//
// A timeout is the service's fault only if the caller's context has not ended. core checks that
// first.
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
	if _, ok := errors.AsType[*os.SyscallError](err); ok { // from clients that write to sockets themselves
		return true
	}
	slow, ok := errors.AsType[net.Error](err)
	return ok && slow.Timeout()
}
