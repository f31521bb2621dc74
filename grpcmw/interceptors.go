package grpcmw

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
)

// Interceptors holds the lock of each method that has a rule around its handler. Make it with [New],
// once, when the program starts. It never changes.
type Interceptors struct {
	rules map[string]*rule // by full method
}

// New returns the interceptors for the methods that have a rule, from opts or from the .proto files.
// It checks all rules. An invalid rule is a core.ErrInvalid that names the method. Without any rule
// nothing is locked.
func New(l *core.Locker, opts ...Option) (*Interceptors, error) {
	return newFrom(protoregistry.GlobalFiles, l, opts)
}

func newFrom(files *protoregistry.Files, l *core.Locker, opts []Option) (*Interceptors, error) {
	b := &builder{locks: l, files: files, rules: make(map[string]*rule)}
	_, err := l.With()
	if err == nil {
		err = adapter.Apply(b, opts)
	}
	if err == nil {
		err = b.read()
	}
	if err != nil {
		return nil, fmt.Errorf("grpcmw: %w", err)
	}
	for _, r := range b.rules {
		r.log = b.log // wherever in the list it stands
	}
	return &Interceptors{b.rules}, nil
}

// ServerOptions installs both interceptors after those that the server already has. It panics on
// rules that cannot work; [New] returns the error.
//
// Put interceptors that authenticate, log or recover before these. Put one that calls SetHeader after
// them: once a header is sent, standard clients ignore when they should try again.
func ServerOptions(l *core.Locker, opts ...Option) []grpc.ServerOption {
	return adapter.Must(New(l, opts...)).ServerOptions()
}

// UnaryServerInterceptor returns the interceptor for unary methods. It does not see streaming
// methods, so their rules need [StreamServerInterceptor] too. It panics on rules that cannot work;
// [New] returns the error.
func UnaryServerInterceptor(l *core.Locker, opts ...Option) grpc.UnaryServerInterceptor {
	return adapter.Must(New(l, opts...)).Unary()
}

// StreamServerInterceptor returns the interceptor for streaming methods. It does not see unary
// methods, so their rules need [UnaryServerInterceptor] too. It panics on rules that cannot work;
// [New] returns the error.
//
// The package documentation says how a locked stream behaves.
func StreamServerInterceptor(l *core.Locker, opts ...Option) grpc.StreamServerInterceptor {
	return adapter.Must(New(l, opts...)).Stream()
}

// ServerOptions is the function [ServerOptions] for existing interceptors.
func (i *Interceptors) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(i.unary), grpc.ChainStreamInterceptor(i.stream)}
}

// Methods returns the full names of the locked methods, sorted. Use it for a log, or for a test that
// no annotation is missing.
func (i *Interceptors) Methods() []string { return slices.Sorted(maps.Keys(i.rules)) }

// Unary returns the interceptor for unary methods.
func (i *Interceptors) Unary() grpc.UnaryServerInterceptor { return i.unary }

// Stream returns the interceptor for streaming methods.
func (i *Interceptors) Stream() grpc.StreamServerInterceptor { return i.stream }

func (i *Interceptors) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	a, err := i.rules[info.FullMethod].run(ctx, req, func(ctx context.Context) (err error) {
		resp, err = handler(ctx, req)
		return err
	})
	if a == nil {
		return resp, err
	}
	_ = grpc.SetTrailer(ctx, a.Trailer()) // fails only where there is no client to tell
	return nil, a
}

func (i *Interceptors) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	a, err := i.rules[info.FullMethod].serve(srv, ss, handler)
	if a == nil {
		return err
	}
	ss.SetTrailer(a.Trailer())
	return a
}
