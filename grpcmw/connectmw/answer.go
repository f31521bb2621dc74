package connectmw

import (
	"errors"
	"math"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// own is a handler's error on its way through package grpcmw.
type own struct{ error }

func (o *own) Unwrap() error { return o.error }

// further is the answer of an interceptor further in. It is a status, which package grpcmw leaves as it is.
type further struct{ own }

func (f *further) GRPCStatus() *status.Status {
	return status.New(codes.Code(connect.CodeOf(f.error)), f.Error())
}

// asOwn marks a handler's error. nil is none.
func asOwn(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*connect.Error); ok { //nolint:errorlint // what wraps one is the handler's
		if _, ours := e.Unwrap().(*refusal); ours { //nolint:errorlint // as above
			return &further{own{err}}
		}
	}
	return &own{err}
}

// translate turns an answer of package grpcmw into Connect's error. A handler's own error stays what it is.
func translate(err error, trailer metadata.MD) error {
	switch o := err.(type) { //nolint:errorlint // what package grpcmw answers may wrap it
	case *own:
		return o.error
	case *further:
		return o.error
	}
	answer, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	if !ok {
		return err
	}
	s := answer.GRPCStatus()
	translated := connect.NewError(connect.Code(s.Code()), &refusal{s.Message(), err})
	for _, detail := range s.Details() {
		m, ok := detail.(proto.Message)
		if !ok {
			continue
		}
		if d, err := connect.NewErrorDetail(m); err == nil {
			translated.AddDetail(d)
		}
		if retry, ok := m.(*errdetails.RetryInfo); ok {
			translated.Meta().Set("Retry-After", seconds(retry.GetRetryDelay().AsDuration()))
		}
	}
	for name, values := range trailer {
		for _, v := range values {
			translated.Meta().Add(name, v)
		}
	}
	return translated
}

// seconds is a Retry-After, rounded up.
func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }

// refusal is what the client is told, and for interceptors outside its cause.
type refusal struct {
	told  string
	cause error
}

func (r *refusal) Error() string { return r.told }
func (r *refusal) Unwrap() error { return r.cause }
