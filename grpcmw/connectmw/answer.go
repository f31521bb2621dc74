package connectmw

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// translate turns an answer of package grpcmw into Connect's error. A handler's own error stays what it is.
func translate(err, own error, trailer metadata.MD) error {
	if err == nil || same(err, own) {
		return err
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

// same says whether err is that very error of the handler. == panics on errors that cannot be compared, such as slices.
// Those of package grpcmw can be.
func same(err, own error) bool {
	switch {
	case own == nil:
		return false
	case !reflect.ValueOf(err).Comparable():
		return true
	default:
		return reflect.ValueOf(own).Comparable() && err == own //nolint:errorlint // that very error, and no other
	}
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
