package grpcmw

import (
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-go/holdfast/core"
)

// ErrNoLock is what the function of [WithMethodOption] returns for a method that is not to be locked.
var ErrNoLock = errors.New("grpcmw: no lock")

// WithMethodOption locks every method that has an option of your own, an extension of
// google.protobuf.MethodOptions:
//
//	extend google.protobuf.MethodOptions { string exclusive = 50001; }
//
//	grpcmw.WithMethodOption(acmepb.E_Exclusive, func(key string) (string, []core.Option, error) {
//		return key, []core.Option{core.WithTTL(time.Minute)}, nil
//	})
//
// When the interceptors are made, the function is called once for each method that has the option, of
// all services whose generated code is linked in. It returns the key template and the options of the
// rule, as for [WithMethod]. T is the Go type of the option's value. If the function returns an
// error, the construction fails with the method's name. Only [ErrNoLock] leaves the method without a
// lock. As with [WithAnnotations], a method that [WithMethod] or [WithMethodFunc] lists keeps that
// rule, and the function is not called for it.
//
// You can give it once for each of several options. It is an error if two of them lock the same
// method, or if one is given twice.
func WithMethodOption[T any](option protoreflect.ExtensionType, rule func(value T) (key string, opts []core.Option, err error)) Option {
	return optionFunc(func(b *builder) error {
		if option == nil {
			return fmt.Errorf("grpcmw: WithMethodOption: extension: nil: %w", core.ErrInvalid)
		}
		if err := fits[T](option); err != nil {
			return &optionError{option, err}
		}
		if rule == nil {
			return &optionError{option, errors.New("function: nil")}
		}
		b.readers = append(b.readers, reader{option, func(value any) (string, []core.Option, error) {
			return rule(value.(T))
		}})
		return nil
	})
}

// fits says what keeps values of option from being options of methods, or of type T.
func fits[T any](option protoreflect.ExtensionType) error {
	if extends := option.TypeDescriptor().ContainingMessage().FullName(); extends != methodOptions {
		return fmt.Errorf("it extends %s, not %s", extends, methodOptions)
	}
	value := option.InterfaceOf(option.Zero())
	if _, ok := value.(T); !ok {
		return fmt.Errorf("the function takes %s, the option has %T", reflect.TypeFor[T](), value)
	}
	return nil
}

// optionError says what is wrong with an option, whatever the methods.
type optionError struct {
	option protoreflect.ExtensionType
	err    error
}

func (e *optionError) Error() string {
	return fmt.Sprintf("grpcmw: option (%s): %v", e.option.TypeDescriptor().FullName(), e.err)
}

// Is makes errors.Is(err, core.ErrInvalid) true.
func (e *optionError) Is(target error) bool { return target == core.ErrInvalid }
