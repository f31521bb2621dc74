package grpcmw

import (
	"context"
	"errors"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-go/holdfast/core"
)

// WithoutLock leaves methods without a lock that a pattern such as "/shop.v1.Orders/*", or an option
// in the .proto file, would lock. A method that no linked service has, or that is listed elsewhere
// too, is an error.
func WithoutLock(fullMethods ...string) Option {
	return optionFunc(func(b *builder) error {
		for _, full := range fullMethods {
			if b.rules[full] != nil || b.unlocked[full] {
				return &ruleError{full, errors.New("listed twice")}
			}
			if _, err := findMethod(b.files, full); err != nil {
				return &ruleError{full, err}
			}
			b.unlocked[full] = true
		}
		return nil
	})
}

// WithSkipper lets calls pass without their lock: those for which skip returns true. It is asked for
// each call of a method that has a rule, before anything of the request is read. The default, which
// nil also means, is none. If it is given twice, the last one wins.
func WithSkipper(skip func(ctx context.Context, fullMethod string) bool) Option {
	return optionFunc(func(b *builder) error {
		b.skipper = skip
		return nil
	})
}

// WithoutMessageCheck lets the later messages of a client's stream name something else than the first
// one, which is what is locked. It is an option of a rule, next to core's options:
//
//	grpcmw.WithMethod("/shop.v1.Orders/Import", "batch:{batch}", grpcmw.WithoutMessageCheck())
//
// By default such a message is refused with INVALID_ARGUMENT, since the handler would work on it
// without its lock. Elsewhere, as in core.New, it is [core.ErrInvalid].
func WithoutMessageCheck() core.Option { return uncheckedOption{misplaced} }

// uncheckedOption goes among core's options, whose interface is sealed, by holding one.
type uncheckedOption struct{ core.Option }

// misplaced is what core makes of an uncheckedOption that no rule has taken out: an error.
var misplaced = core.WithLabel("grpcmw.WithoutMessageCheck, out of its place\n")

// split takes out what is not for core.
func split(opts []core.Option) (unchecked bool, others []core.Option) {
	for _, o := range opts {
		if _, ok := o.(uncheckedOption); ok {
			unchecked = true
			continue
		}
		others = append(others, o)
	}
	return unchecked, others
}

// pattern is a rule for all methods of a service.
type pattern struct {
	text, service string
	opts          []core.Option
	keyerFor      func(protoreflect.MethodDescriptor) (keyer, error)
}

func (b *builder) pattern(p pattern) error {
	for _, other := range b.patterns {
		if other.text == p.text {
			return &ruleError{p.text, errors.New("listed twice")}
		}
	}
	b.patterns = append(b.patterns, p)
	return nil
}

// spread makes rules of the patterns, for methods that have none. The error has all methods for which
// that cannot work.
func (b *builder) spread() error {
	var errs []error
	for _, p := range b.patterns {
		d, err := b.files.FindDescriptorByName(protoreflect.FullName(p.service))
		service, ok := d.(protoreflect.ServiceDescriptor)
		if err != nil || !ok {
			errs = append(errs, &ruleError{p.text, errors.New("unknown: this program has no such service")})
			continue
		}
		for i := range service.Methods().Len() {
			m := service.Methods().Get(i)
			if full := fullName(m); b.rules[full] == nil && !b.unlocked[full] {
				if err := b.lock(m, p); err != nil {
					errs = append(errs, &ruleError{full, err})
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (b *builder) lock(m protoreflect.MethodDescriptor, p pattern) error {
	k, err := p.keyerFor(m)
	if err != nil {
		return err
	}
	return b.add(m, k, p.opts)
}
