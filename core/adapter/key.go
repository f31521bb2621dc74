package adapter

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
)

// Source reads one value of a request of type R. Make it with [Text] or [Typed].
type Source[R any] struct {
	read func(context.Context, R) (string, error)
	text bool
}

// Text is a source of text, such as the value of a path, a query or a header. Text has no type: 42, 042 and
// +42 may be one order, and nobody knows. So a template has to say the value's form, as in {id|int}.
//
// read returns "" for a value that is missing. Its errors are about the request, such as [key.ErrAmbiguous],
// or they match [ErrMisconfigured]. They hold nothing of the value.
func Text[R any](read func(context.Context, R) (string, error)) Source[R] {
	return Source[R]{read, true}
}

// Typed is a source of values that have one spelling, such as a field of a message, a member of a JSON
// document, or what the program itself has chosen. read is that of [Text].
func Typed[R any](read func(context.Context, R) (string, error)) Source[R] {
	return Source[R]{read, false}
}

// Only returns the value of a source that a request may repeat: "" for none, and [key.ErrAmbiguous] if
// the values differ. Nobody knows which of them the handler would read.
func Only(values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	for _, v := range values[1:] {
		if v != values[0] {
			return "", key.ErrAmbiguous
		}
	}
	return values[0], nil
}

// Sources makes the Source of a name that a template has between its braces, without its form: "id" or
// "header:X-Tenant". [NewKey] calls it. Its error says which sources there are.
type Sources[R any] func(name string) (Source[R], error)

// Of are sources of a value that a request carries with it, such as what the framework has decoded it to.
func Of[R, V any](sources Sources[V], value func(R) V) Sources[R] {
	return func(name string) (Source[R], error) {
		s, err := sources(name)
		return Source[R]{func(ctx context.Context, req R) (string, error) { return s.read(ctx, value(req)) }, s.text}, err
	}
}

// Key makes the names of the locks of a request, mostly one. The zero Key makes none. A Key never changes, and is
// safe for concurrent use.
type Key[R any] struct {
	text  string
	names func(context.Context, R) ([]string, error)
}

// compiled is one template with its sources.
type compiled[R any] struct {
	key     *key.Key
	sources []Source[R]
}

// NewKey compiles a template, or several with a space between them, see [key.ParseAll]. What cannot work is
// [core.ErrInvalid].
func NewKey[R any](templates string, sources Sources[R]) (Key[R], error) {
	parsed, err := key.ParseAll(templates)
	if err != nil {
		return Key[R]{}, err
	}
	all := make([]compiled[R], len(parsed))
	for i, k := range parsed {
		all[i].key = k
		for _, source := range k.Sources() {
			s, err := sources(source.Name)
			if err == nil && s.text {
				err = source.CheckForm()
			}
			if err != nil {
				return Key[R]{}, fmt.Errorf("%w: key %q: {%s}: %w", core.ErrInvalid, k, source.Name, err)
			}
			all[i].sources = append(all[i].sources, s)
		}
	}
	return Key[R]{templates, func(ctx context.Context, req R) ([]string, error) {
		names := make([]string, len(all))
		for i, c := range all {
			next := 0
			name, err := c.key.Expand(func(string) (string, error) { // asks once for each source, in order
				s := c.sources[next]
				next++
				return s.read(ctx, req)
			})
			if err != nil {
				return nil, err
			}
			names[i] = name
		}
		return names, nil
	}}, nil
}

// KeyFunc is a Key whose names a function makes, where no template can. text stands for the key in logs and
// metrics; it may be "". (*key.Key).Name makes a valid name from any values.
func KeyFunc[R any](text string, name func(context.Context, R) (string, error)) (Key[R], error) {
	if name == nil {
		return Key[R]{}, fmt.Errorf("%w: nil function", core.ErrInvalid)
	}
	return Key[R]{text, func(ctx context.Context, req R) ([]string, error) {
		n, err := name(ctx, req)
		if err == nil {
			err = key.CheckName(n) // here, because what core refuses later is not the request's fault
		}
		if err != nil {
			return nil, err
		}
		return []string{n}, nil
	}}, nil
}

// Names makes the names of a request. An error is that of a source, in a [*key.SourceError], or that of the function.
func (k Key[R]) Names(ctx context.Context, req R) ([]string, error) { return k.names(ctx, req) }

// String returns the templates, which are of low cardinality.
func (k Key[R]) String() string { return k.text }
