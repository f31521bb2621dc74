package grpcmw

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
)

// What the ErrorInfo of a door's own status says: clients tell by it that no handler has
// answered, or that its answer does not count.
const (
	Domain = "holdfast"

	ReasonHeld        = "LOCK_HELD"
	ReasonDuplicate   = "LOCK_DUPLICATE"
	ReasonLost        = "LOCK_LOST"
	ReasonKeyInvalid  = "LOCK_KEY_INVALID"
	ReasonUnavailable = "LOCK_UNAVAILABLE"

	// MethodMetadata is the key in an ErrorInfo's metadata for the full method that was refused. Its
	// handler did not run.
	MethodMetadata = "method"
)

// retrySoon is when another try makes sense if nothing better is known.
const retrySoon = time.Second

// The trailer that tells clients with a retryPolicy when to try again.
const (
	pushbackKey  = "grpc-retry-pushback-ms"
	pushbackMS   = 250
	pushbackSpan = pushbackMS / 5 // either way
	pushbackStop = "-1"           // do not try again
)

// answer is a status that the door itself gives. All that reaches a client is the status
// and the trailer; interceptors further out can look for core's error with errors.Is.
type answer struct {
	status   *status.Status
	pushback string // "" for no such trailer
	cause    error
}

func (a *answer) Error() string              { return a.status.String() }
func (a *answer) GRPCStatus() *status.Status { return a.status }
func (a *answer) Unwrap() error              { return a.cause }

// trailer returns what goes to the client beside err, nil for nothing.
func trailer(err error) metadata.MD {
	a, ok := errors.AsType[*answer](err)
	if !ok || a.pushback == "" {
		return nil
	}
	return metadata.Pairs(pushbackKey, a.pushback)
}

// refused is the answer where core gave no lease. The name is usable: what core finds invalid
// is how the rule wants it locked, such as WithDedup on a name that the context holds already.
//
// The order matters: the end of a context is joined with what was known before it, and
// "held" is what a client can act on.
func refused(method string, err error) *answer {
	switch core.KindOf(err) {
	case core.KindHeld:
		return held(method, err)
	case core.KindDuplicate:
		return newAnswer(err, codes.AlreadyExists, "the request was processed before", refusal(method, ReasonDuplicate))
	case core.KindInvalid:
		return newAnswer(err, codes.Internal, "the lock cannot be taken as its rule says")
	case core.KindEnded:
		return ended(err)
	default: // unavailable, closed
		return newAnswer(err, codes.Unavailable, unanswered(err),
			refusal(method, ReasonUnavailable), &errdetails.RetryInfo{RetryDelay: durationpb.New(retrySoon)})
	}
}

// unanswered says whose fault it is that nobody knows whether the lock is free.
func unanswered(err error) string {
	if errors.Is(err, core.ErrDraining) || errors.Is(err, core.ErrClosed) {
		return "the server is about to stop"
	}
	return "the lock service did not answer"
}

// unnamed is the answer where the request gave no name to lock. An error of a key function
// that is a status already is the service's own, as a handler's is.
func unnamed(method string, err error) error {
	_, own := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	switch {
	case own:
		return err
	case errors.Is(err, errRequestType):
		return newAnswer(err, codes.Internal, "the request is not of the type that the method has")
	case isContextError(err):
		return ended(err)
	default:
		return newAnswer(err, codes.InvalidArgument, "a value that names the lock is missing or invalid",
			append([]protoadapt.MessageV1{refusal(method, ReasonKeyInvalid)}, violation(err)...)...)
	}
}

// violation says which source is at fault, and never with what value.
func violation(err error) []protoadapt.MessageV1 {
	source, ok := errors.AsType[*key.SourceError](err)
	if !ok {
		return nil
	}
	return []protoadapt.MessageV1{&errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: source.Source, Description: source.Reason()}},
	}}
}

// lost is the answer where the lock did not last as long as the handler. Part of its work
// may be done, so clients must not repeat it by themselves.
func lost(err error) *answer {
	a := newAnswer(err, codes.Aborted, "the lock was lost while the request ran", info(ReasonLost))
	a.pushback = pushbackStop
	return a
}

func held(method string, err error) *answer {
	details := []protoadapt.MessageV1{refusal(method, ReasonHeld)}
	if h, ok := errors.AsType[*core.HeldError](err); ok {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(h.RetryAfter)})
	}
	a := newAnswer(err, codes.Aborted, "another request holds the lock", details...)
	ms := pushbackMS - pushbackSpan + rand.IntN(2*pushbackSpan+1) //nolint:gosec // G404: it spreads retries
	a.pushback = strconv.Itoa(ms)
	return a
}

func isContextError(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func ended(err error) *answer {
	if errors.Is(err, context.DeadlineExceeded) {
		return newAnswer(err, codes.DeadlineExceeded, "the deadline passed before the lock was held")
	}
	return newAnswer(err, codes.Canceled, "the request was canceled before the lock was held")
}

func info(reason string) *errdetails.ErrorInfo {
	return &errdetails.ErrorInfo{Reason: reason, Domain: Domain}
}

// refusal names the method: only the server that was asked to run it can say so of it. A handler that
// passes on the status of a service that it has called itself names another one.
func refusal(method, reason string) *errdetails.ErrorInfo {
	i := info(reason)
	i.Metadata = map[string]string{MethodMetadata: method}
	return i
}

func newAnswer(cause error, code codes.Code, text string, details ...protoadapt.MessageV1) *answer {
	s := status.New(code, text)
	if detailed, err := s.WithDetails(details...); err == nil {
		s = detailed
	}
	return &answer{status: s, cause: cause}
}
