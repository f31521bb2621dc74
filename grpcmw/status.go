package grpcmw

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
)

// What the ErrorInfo of an interceptor's own status says: clients tell by it that no handler has
// answered, or that its answer does not count. See [ReasonOf].
const (
	Domain = "holdfast"

	ReasonHeld        = "LOCK_HELD"        // another request holds a lock
	ReasonDuplicate   = "LOCK_DUPLICATE"   // it was done before
	ReasonLost        = "LOCK_LOST"        // a lock was lost while the request ran; what it has done is not known
	ReasonKeyInvalid  = "LOCK_KEY_INVALID" // a value that names a lock is missing or invalid
	ReasonUnavailable = "LOCK_UNAVAILABLE" // the lock service did not answer, or the server is about to stop
)

// The trailer that tells clients with a retryPolicy when to try again.
const (
	pushbackKey  = "grpc-retry-pushback-ms"
	pushbackMS   = 250
	pushbackSpan = pushbackMS / 5 // either way
	pushbackStop = "-1"           // do not try again
)

// row is what clients are told of a reason.
type row struct {
	code   codes.Code
	text   string
	reason string // "" for no ErrorInfo
}

var rows = map[adapter.Reason]row{
	adapter.Held:          {codes.Aborted, "another request holds a lock that this one needs", ReasonHeld},
	adapter.Duplicate:     {codes.AlreadyExists, "the request was processed before", ReasonDuplicate},
	adapter.BadKey:        {codes.InvalidArgument, "a value that names a lock is missing or invalid", ReasonKeyInvalid},
	adapter.Misconfigured: {codes.Internal, "a lock cannot be taken as the server's rules say", ""},
	adapter.Unavailable:   {codes.Unavailable, "the lock service did not answer", ReasonUnavailable},
	adapter.Stopping:      {codes.Unavailable, "the server is about to stop", ReasonUnavailable},
	adapter.Ended:         {codes.Canceled, "the request ended before the lock was held", ""},
	adapter.Lost:          {codes.Aborted, "a lock was lost while the request ran", ReasonLost},
}

// answer is a status that an interceptor itself gives. All that reaches a client is the status
// and the trailer; interceptors further out can look for core's error with errors.Is.
type answer struct {
	status   *status.Status
	pushback string // "" for no such trailer
	cause    error
}

func (a *answer) Error() string              { return a.status.Message() }
func (a *answer) GRPCStatus() *status.Status { return a.status }
func (a *answer) Unwrap() error              { return a.cause }

// Trailer is what goes to the client beside the status. Package connectmw looks for it.
func (a *answer) Trailer() metadata.MD {
	if a.pushback == "" {
		return nil
	}
	return metadata.Pairs(pushbackKey, a.pushback)
}

// refusalOf is what becomes of a request whose handler did not run, or lost its lock. An error of a key function that is a
// status already is the service's own, as a handler's is; but it is no success, whatever it says.
func refusalOf(out adapter.Outcome) *answer {
	reason, cause := out.Reason, out.Err
	if reason == adapter.Lost { // part of the work may be done
		return newAnswer(reason, out.Join(), "")
	}
	if own, ok := errors.AsType[statusError](cause); ok && reason == adapter.BadKey && own.GRPCStatus().Code() != codes.OK {
		return &answer{status: own.GRPCStatus(), cause: cause} // and no text of what wraps it, or stands beside it
	}
	if reason == adapter.BadKey && (errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled)) {
		reason = adapter.Ended
	}
	var text string
	var details []protoadapt.MessageV1
	if after := out.RetryAfter(); after > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	}
	if source, ok := errors.AsType[*key.SourceError](cause); ok && reason == adapter.BadKey { // which one is at fault, and never with what value
		text = fmt.Sprintf("{%s}, which names a lock, is %s", source.Source, source.Reason())
		details = append(details, &errdetails.BadRequest{
			FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: source.Source, Description: source.Reason()}},
		})
	}
	a := newAnswer(reason, cause, text, details...)
	a.pushback = ""
	if reason == adapter.Held {
		a.pushback = fmt.Sprint(pushbackMS - pushbackSpan + rand.IntN(2*pushbackSpan+1)) //nolint:gosec // G404: it spreads retries
	}
	return a
}

// newAnswer makes the answer of a reason, with its own text if there is none. Clients must not repeat the request by themselves,
// unless the pushback is changed.
func newAnswer(reason adapter.Reason, cause error, text string, details ...protoadapt.MessageV1) *answer {
	r := rows[reason]
	if reason == adapter.Ended && errors.Is(cause, context.DeadlineExceeded) {
		r.code = codes.DeadlineExceeded
	}
	if r.reason != "" {
		details = append([]protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: r.reason, Domain: Domain}}, details...)
	}
	s := status.New(r.code, cmp.Or(text, r.text))
	if detailed, err := s.WithDetails(details...); err == nil {
		s = detailed
	}
	return &answer{s, pushbackStop, cause}
}

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
// The handler may have done something before. So the status has no RetryInfo, as a refusal by the interceptors has.
func StatusFor(err error) *status.Status {
	if a := answerTo(err); a != nil {
		return a.status
	}
	return nil
}

// answerTo is the answer to an error of core that came out of a handler, nil for other errors. A stock client knows only the
// code, so the pushback tells it to stop.
func answerTo(err error) *answer {
	if reason := adapter.ReasonOf(err); reason != 0 {
		return newAnswer(reason, err, "")
	}
	return nil
}

// instead is the answer in place of an error that a handler has returned, nil for none. A status is the handler's own answer, and
// so is that of an interceptor further in. One that is only wrapped does not count: gRPC would send the whole error's text with it.
func instead(own error) *answer {
	if _, outermost := own.(statusError); outermost { //nolint:errorlint // as above
		return nil
	}
	return answerTo(own)
}

// statusError is what gRPC takes for a status.
type statusError interface {
	error
	GRPCStatus() *status.Status
}

// ReasonOf is what a status that a client got says of a lock: one of the constants, such as [ReasonHeld], "" for none. With
// [ReasonKeyInvalid], the status' BadRequest says which value is missing or invalid.
func ReasonOf(err error) string {
	for _, d := range status.Convert(err).Details() {
		if i, ok := d.(*errdetails.ErrorInfo); ok && i.GetDomain() == Domain {
			return i.GetReason()
		}
	}
	return ""
}
