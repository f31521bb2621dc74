package connectmw

import (
	"math"
	"strconv"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// answer is one of package grpcmw. Its text is what the client is told; it wraps core's error, for interceptors outside.
type answer interface {
	error
	GRPCStatus() *status.Status
	Trailer() metadata.MD
}

// own is a handler's error on its way through package grpcmw.
type own struct{ error }

func (o own) Unwrap() error { return o.error }

// further is the answer of an interceptor further in. It is a status, which package grpcmw leaves as it is.
type further struct{ own }

func (f further) GRPCStatus() *status.Status {
	return status.New(codes.Code(connect.CodeOf(f.error)), f.Error())
}

// asOwn marks a handler's error. nil is none.
func asOwn(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*connect.Error); ok { //nolint:errorlint // what wraps one is the handler's
		if _, ours := e.Unwrap().(answer); ours { //nolint:errorlint // as above
			return further{own{err}}
		}
	}
	return own{err}
}

// translate turns an answer of package grpcmw into Connect's error. A handler's own error stays what it is.
func translate(err error) error {
	var a answer
	switch e := err.(type) { //nolint:errorlint // what package grpcmw answers may wrap it
	case own:
		return e.error
	case further:
		return e.error
	case answer:
		a = e
	default:
		return err
	}
	translated := connect.NewError(connect.Code(a.GRPCStatus().Code()), a)
	for _, detail := range a.GRPCStatus().Details() {
		m, _ := detail.(proto.Message)
		if d, err := connect.NewErrorDetail(m); err == nil {
			translated.AddDetail(d)
		}
		if retry, ok := m.(*errdetails.RetryInfo); ok {
			seconds := math.Ceil(retry.GetRetryDelay().AsDuration().Seconds())
			translated.Meta().Set("Retry-After", strconv.Itoa(int(seconds)))
		}
	}
	for name, values := range a.Trailer() {
		translated.Meta().Set(name, values[0])
	}
	return translated
}
