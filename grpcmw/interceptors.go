package grpcmw

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/holdfast-go/holdfast/core"
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
	if _, err := l.With(); err != nil {
		return nil, fmt.Errorf("grpcmw: %w", err)
	}
	b := &builder{locks: l, files: files, rules: make(map[string]*rule)}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("grpcmw: option: nil: %w", core.ErrInvalid)
		}
		if err := o.apply(b); err != nil {
			return nil, err
		}
	}
	if err := b.read(); err != nil {
		return nil, err
	}
	for _, r := range b.rules {
		r.log = b.log // wherever in the list it stands
	}
	return &Interceptors{b.rules}, nil
}

func must(l *core.Locker, opts []Option) *Interceptors {
	i, err := New(l, opts...)
	if err != nil {
		panic(err.Error())
	}
	return i
}

// ServerOptions installs both interceptors after those that the server already has. It panics on
// rules that cannot work; [New] returns the error.
//
// Put interceptors that authenticate, log or recover before these. Put one that calls SetHeader after
// them: once a header is sent, standard clients ignore when they should try again.
func ServerOptions(l *core.Locker, opts ...Option) []grpc.ServerOption {
	return must(l, opts).ServerOptions()
}

// UnaryServerInterceptor returns the interceptor for unary methods. It does not see streaming
// methods, so their rules need [StreamServerInterceptor] too. It panics on rules that cannot work;
// [New] returns the error.
func UnaryServerInterceptor(l *core.Locker, opts ...Option) grpc.UnaryServerInterceptor {
	return must(l, opts).Unary()
}

// StreamServerInterceptor returns the interceptor for streaming methods. It does not see unary
// methods, so their rules need [UnaryServerInterceptor] too. It panics on rules that cannot work;
// [New] returns the error.
//
// The package documentation says how a locked stream behaves.
func StreamServerInterceptor(l *core.Locker, opts ...Option) grpc.StreamServerInterceptor {
	return must(l, opts).Stream()
}

// ServerOptions is the function [ServerOptions] for existing interceptors.
func (i *Interceptors) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(i.Unary()),
		grpc.ChainStreamInterceptor(i.Stream()),
	}
}

// Methods returns the full names of the locked methods, sorted. Use it for a log, or for a test that
// no annotation is missing.
func (i *Interceptors) Methods() []string { return slices.Sorted(maps.Keys(i.rules)) }

// Unary returns the interceptor for unary methods.
func (i *Interceptors) Unary() grpc.UnaryServerInterceptor { return i.unary }

// Stream returns the interceptor for streaming methods.
func (i *Interceptors) Stream() grpc.StreamServerInterceptor { return i.stream }

func (i *Interceptors) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	r := i.rules[info.FullMethod]
	var resp any
	work := func(ctx context.Context) (err error) {
		resp, err = handler(ctx, req)
		return err
	}
	var answered, told bool
	var err error
	if r == nil {
		err = work(ctx)
	} else {
		answered, err = r.run(ctx, req, work)
	}
	if answered {
		resp = nil
	} else {
		told, err = own(err)
	}
	if md := trailer(err); md != nil && !told {
		_ = grpc.SetTrailer(ctx, md) // fails only where there is no client to tell
	}
	return resp, err
}

func (i *Interceptors) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	r := i.rules[info.FullMethod]
	var answered, told bool
	var err error
	if r == nil {
		err = handler(srv, ss)
	} else {
		answered, err = r.serve(srv, ss, handler)
	}
	if !answered {
		told, err = own(err)
	}
	if md := trailer(err); md != nil && !told {
		ss.SetTrailer(md)
	}
	return err
}
