package adapter

import (
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Fields are the sources of a struct by the names of its fields in Go: {OrderID} or {Order.ID}. They are
// checked against the type when the key is made. Fields are strings, integers, bools, and types that
// implement [encoding.TextMarshaler], such as a UUID. Where equal values can have several texts, the type is refused:
// time.Time, big.Float and json.Number, and what embeds a type of that kind.
//
// An empty string, 0 and false are missing values, and so is a nil pointer on the way. A pointer to 0 is a value.
func Fields[T any]() Sources[*T] {
	return func(name string) (Source[*T], error) {
		at := reflect.TypeFor[T]()
		var way [][]int
		for part := range strings.SplitSeq(name, ".") {
			at = pointed(at)
			if at.Kind() != reflect.Struct {
				return Source[*T]{}, fmt.Errorf("%v is no struct, and has no field %q", at, part)
			}
			field, ok := at.FieldByName(part)
			if !ok || !field.IsExported() {
				return Source[*T]{}, fmt.Errorf("%v has no exported field %q", at, part)
			}
			way, at = append(way, field.Index), field.Type
		}
		if !spelled(at) {
			return Source[*T]{}, fmt.Errorf("a %v has more than one spelling, or none: there are strings, integers, bools and types "+
				"that implement encoding.TextMarshaler, except time.Time, big.Float, what embeds one, and json.Number", at)
		}
		return Typed(func(_ context.Context, req *T) (string, error) { return walk(reflect.ValueOf(req), way) }), nil
	}
}

func pointed(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

var marshaler = reflect.TypeFor[encoding.TextMarshaler]()

// spelled says whether values of a type have one text each.
func spelled(t reflect.Type) bool {
	switch t = pointed(t); {
	case t == reflect.TypeFor[json.Number](): // 42 is 42.0
		return false
	case reflect.PointerTo(t).Implements(marshaler):
		return !ambiguous(t)
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	default:
		return false
	}
}

// ambiguous says of a type with a text that equal values differ in it: an instant by its location, a number by its precision. What
// embeds such a type, or the interface, has its method. It may have one of its own, but nobody can see that.
func ambiguous(t reflect.Type) bool {
	differs := func(t reflect.Type) bool {
		t = pointed(t)
		return t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[big.Float]() || t.Kind() == reflect.Interface && t.Implements(marshaler)
	}
	embeds := func(f reflect.StructField) bool { return f.Anonymous && differs(f.Type) }
	return differs(t) || t.Kind() == reflect.Struct && slices.ContainsFunc(reflect.VisibleFields(t), embeds)
}

// Value is the text of a value that has one spelling, as Fields takes it from a struct. Generated code calls it: see package
// lockgen. A value of another type is [ErrMisconfigured].
func Value[T any](v T) (string, error) {
	if t := reflect.TypeFor[T](); !spelled(t) {
		return "", fmt.Errorf("%w: a %v has more than one spelling, or none", ErrMisconfigured, t)
	}
	return read(reflect.ValueOf(&v).Elem())
}

// walk reads the field at the end of the way.
func walk(v reflect.Value, way [][]int) (string, error) {
	for _, part := range way {
		for v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return "", nil
			}
			v = v.Elem()
		}
		var err error
		if v, err = v.FieldByIndexErr(part); err != nil {
			return "", nil //nolint:nilerr // an embedded pointer that is nil: the field is missing
		}
	}
	return read(v)
}

// Missing is deferred by generated code while it goes to a field. A nil pointer on the way, which may be an embedded one that
// has no name there, leaves the value missing. reached says that the field was there.
func Missing(reached *bool) {
	if *reached {
		return // what goes wrong in the value's own method passes through
	}
	switch r := recover().(type) {
	case nil, runtime.Error: // a selector knows no other
	default:
		panic(r)
	}
}

// read is the text of v, "" if it is missing.
func read(v reflect.Value) (string, error) {
	given := false // behind a pointer, 0 is a value
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "", nil
		}
		v, given = v.Elem(), true
	}
	if v.IsZero() && !given {
		return "", nil
	}
	return spell(v)
}

func spell(v reflect.Value) (string, error) {
	if reflect.PointerTo(v.Type()).Implements(marshaler) {
		text, err := v.Addr().Interface().(encoding.TextMarshaler).MarshalText() //nolint:forcetypeassert // as above
		if err != nil {                                                          // its text may have the value
			return "", fmt.Errorf("%w: it has no text", core.ErrInvalid)
		}
		return string(text), nil
	}
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), nil
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), nil
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	default:
		return v.String(), nil
	}
}
