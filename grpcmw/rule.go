package grpcmw

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/holdfast-go/holdfast/core"
)

var (
	errRequestType = errors.New("the request is not of the type that the method has")
	errOtherName   = fmt.Errorf("%w: another value than that of the stream's first message", core.ErrInvalid)
)

// rule is one method with its lock.
type rule struct {
	method string
	locks  *core.Locker // with the method's options
	keyer
	log    *slog.Logger // nil for slog.Default()
	logged sync.Once
}

// name returns what to lock, or the error to answer with.
func (r *rule) name(ctx context.Context, req any) (naming, error) {
	n, err := r.expand(ctx, req)
	if err != nil {
		return naming{}, r.blame(ctx, unnamed(r.method, err))
	}
	return n, nil
}

// refused is the error to answer with where core gave no lease.
func (r *rule) refused(ctx context.Context, err error) error {
	return r.blame(ctx, refused(r.method, err))
}

// blame returns the answer given, and logs, once for each method, where the program is at fault and
// not the request.
func (r *rule) blame(ctx context.Context, given error) error {
	if a, ok := errors.AsType[*answer](given); ok && a.status.Code() == codes.Internal {
		r.logged.Do(func() {
			log := r.log
			if log == nil {
				log = slog.Default()
			}
			log.LogAttrs(ctx, slog.LevelError, "holdfast: requests of this method fail",
				slog.String("method", r.method), slog.String("key", r.template), slog.Any("error", a.cause))
		})
	}
	return given
}

var errFailed = errors.New("the handler did not succeed")

// do runs work under the locks that req names. It says whether the error is the door's own
// answer, and not what work has returned.
func (r *rule) do(ctx context.Context, req any, work func(context.Context) error) (answered bool, err error) {
	n, err := r.name(ctx, req)
	if err != nil {
		return true, err
	}
	ran := false
	var own error
	handle := func(ctx context.Context) error {
		ran = true
		if own = work(ctx); own != nil {
			return errFailed // a loss in own is that of another lease
		}
		return nil
	}
	if len(n.names) == 1 {
		err = r.locks.Do(ctx, n.names[0], handle)
	} else {
		err = r.locks.DoAll(ctx, n.names, handle)
	}
	if !ran {
		return true, r.refused(ctx, err)
	}
	if l, ok := errors.AsType[*core.LostError](err); ok {
		return true, lost(errors.Join(own, l))
	}
	return false, own
}

// holding is one lease, or those of several names.
type holding interface {
	Context() context.Context
	Err() error
	Release(ctx context.Context) error
	Finish(ctx context.Context, workErr error) error
}

func (r *rule) acquire(ctx context.Context, n naming) (holding, error) {
	if len(n.names) > 1 {
		return ifHeld(r.locks.AcquireAll(ctx, n.names))
	}
	return ifHeld(r.locks.Acquire(ctx, n.names[0]))
}

// ifHeld makes no interface of a nil pointer.
func ifHeld[H holding](x H, err error) (holding, error) {
	if err != nil {
		return nil, err
	}
	return x, nil
}

// wasLost says whether x, which has ended, had not lasted until then. It is about this
// very lease: the error of the work can be the loss of another one.
func wasLost(x holding) bool {
	return errors.Is(x.Err(), core.ErrLost)
}

func newRule(l *core.Locker, m protoreflect.MethodDescriptor, k keyer, opts []core.Option) (*rule, error) {
	defaults := []core.Option{core.WithWait(0), core.WithTemplate(k.template), core.WithDedupScope(fullName(m)), core.WithOperation(fullName(m))}
	locks, err := l.With(append(defaults, opts...)...)
	if err != nil {
		return nil, err
	}
	return &rule{method: fullName(m), locks: locks, keyer: k}, nil
}

// findMethod returns the descriptor of a method whose generated code is linked in.
func findMethod(files *protoregistry.Files, full string) (protoreflect.MethodDescriptor, error) {
	name := strings.Replace(strings.TrimPrefix(full, "/"), "/", ".", 1)
	d, err := files.FindDescriptorByName(protoreflect.FullName(name))
	m, ok := d.(protoreflect.MethodDescriptor)
	if err != nil || !ok || fullName(m) != full {
		return nil, errors.New(`unknown: no service of this program has it (the form is "/package.Service/Method")`)
	}
	return m, nil
}

func fullName(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}
