package grpcmw

import (
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
)

// StatusFor returns the status for an error of core that came up inside a handler, and nil for any
// other error. The interceptors use it for what handlers return, of methods with a rule and of others:
// the text of such an error has the name of a lock and the label of its holder. It is exported for
// code that stands elsewhere, such as a handler behind another server.
//
//	held           ABORTED, ErrorInfo LOCK_HELD
//	invalid        INVALID_ARGUMENT, ErrorInfo LOCK_KEY_INVALID
//	unavailable    UNAVAILABLE, ErrorInfo LOCK_UNAVAILABLE; also if the Locker is closed
//	ended          DEADLINE_EXCEEDED or CANCELED, if the caller's context ended first
//	lost           ABORTED, ErrorInfo LOCK_LOST
//	duplicate      ALREADY_EXISTS, ErrorInfo LOCK_DUPLICATE
//	released       INTERNAL
//
// The handler may have done something before. So the status does not name the method, as a refusal by
// the interceptors does, and clients do not take it for a proof that nothing was done.
func StatusFor(err error) *status.Status {
	if a := inside(err); a != nil {
		return a.status
	}
	return nil
}

// inside is the answer to an error of core that came out of a handler.
func inside(err error) *answer {
	var a *answer
	switch core.KindOf(err) {
	case core.KindLost:
		a = newAnswer(err, codes.Aborted, "a lock was lost while the request ran", info(ReasonLost))
	case core.KindHeld:
		a = newAnswer(err, codes.Aborted, "another request holds a lock that this one needs", info(ReasonHeld))
	case core.KindDuplicate:
		a = newAnswer(err, codes.AlreadyExists, "a part of the request was processed before", info(ReasonDuplicate))
	case core.KindInvalid:
		a = newAnswer(err, codes.InvalidArgument, "a value that names a lock is missing or invalid", info(ReasonKeyInvalid))
	case core.KindUnavailable, core.KindClosed:
		a = newAnswer(err, codes.Unavailable, unanswered(err), info(ReasonUnavailable))
	case core.KindEnded:
		a = ended(err)
	case core.KindReleased:
		a = newAnswer(err, codes.Internal, "a lock was used after its release")
	default:
		return nil
	}
	a.pushback = pushbackStop // a stock client knows only the code
	return a
}

// own is what becomes of an error that the method's handler has returned. A status is the handler's own answer.
// One that is only wrapped does not count: gRPC would send the whole error's text with it.
func own(method string, err error) error {
	if _, outermost := err.(withStatus); outermost {
		return passedOn(method, err)
	}
	if a := inside(err); a != nil {
		return a
	}
	return err
}

// withStatus is what gRPC takes for a status.
type withStatus interface{ GRPCStatus() *status.Status }

// passedOn is the status of another server that a handler returns. If it was asked for the same method, it says that this
// one's handler did not run, and clients would repeat what the handler has done. An interceptor further in may say so.
func passedOn(method string, err error) error {
	if _, ours := errors.AsType[*answer](err); ours || infoOf(err).GetMetadata()[MethodMetadata] != method {
		return err
	}
	p := status.Convert(err).Proto() // a copy
	for _, d := range p.GetDetails() {
		var i errdetails.ErrorInfo
		if d.UnmarshalTo(&i) == nil && i.GetDomain() == Domain {
			delete(i.GetMetadata(), MethodMetadata)
			_ = d.MarshalFrom(&i) // which it was
		}
	}
	return status.ErrorProto(p)
}
