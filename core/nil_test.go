package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// An acquire whose error was ignored leaves a nil *Lease behind, and a New whose error was ignored
// a nil *Locker. By reflection, so that no method is forgotten.
func TestEveryMethodOfNoLeaseAndOfNoLockerAnswers(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		receiver any
		says     string
	}{
		"nil lease":   {(*core.Lease)(nil), "no lease: the acquire has failed"},
		"zero lease":  {new(core.Lease), "no lease: the acquire has failed"},
		"nil set":     {(*core.LeaseSet)(nil), "no lease: the acquire has failed"},
		"zero set":    {new(core.LeaseSet), "no lease: the acquire has failed"},
		"nil locker":  {(*core.Locker)(nil), "Locker: nil, or not made by New"},
		"zero locker": {new(core.Locker), "Locker: nil, or not made by New"},
	} {
		receiver := reflect.ValueOf(c.receiver)
		for i := range receiver.NumMethod() {
			method := receiver.Type().Method(i)
			t.Run(what+" "+method.Name, func(t *testing.T) {
				t.Parallel()
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("panic: %v", p)
					}
				}()
				printed := &state{}
				results := receiver.Method(i).Call(arguments(t, receiver.Method(i).Type(), printed))
				for _, result := range results {
					answers(t, result, c.says)
				}
				if len(results) == 0 && printed.Len() == 0 {
					t.Error("no result, and nothing printed")
				}
			})
		}
	}
}

// state is where Format prints.
type state struct{ bytes.Buffer }

func (*state) Width() (int, bool)     { return 0, false }
func (*state) Precision() (int, bool) { return 0, false }
func (*state) Flag(int) bool          { return false }

// arguments are good ones, so that what is answered is about the receiver.
func arguments(t *testing.T, method reflect.Type, printed *state) (args []reflect.Value) {
	t.Helper()
	for i := range method.NumIn() {
		in := method.In(i)
		switch {
		case method.IsVariadic() && i == method.NumIn()-1:
		case in == reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(t.Context()))
		case in == reflect.TypeFor[fmt.State]():
			args = append(args, reflect.ValueOf(printed))
		case in == reflect.TypeFor[error]():
			args = append(args, reflect.Zero(in))
		case in == reflect.TypeFor[core.Handoff]():
			args = append(args, reflect.ValueOf(handoff(t)))
		case in == reflect.TypeFor[time.Duration]():
			args = append(args, reflect.ValueOf(time.Minute))
		case in.Kind() == reflect.String:
			args = append(args, reflect.ValueOf("name"))
		case in == reflect.TypeFor[[]string]():
			args = append(args, reflect.ValueOf([]string{"a", "b"}))
		case in.Kind() == reflect.Func:
			args = append(args, reflect.MakeFunc(in, func([]reflect.Value) []reflect.Value {
				t.Error("the work runs")
				return []reflect.Value{reflect.Zero(reflect.TypeFor[error]())}
			}))
		case in.Kind() == reflect.Uint64 || in.Kind() == reflect.Int32:
			args = append(args, reflect.ValueOf(7).Convert(in))
		default:
			t.Fatalf("no argument for a %s: say one here", in)
		}
	}
	return args
}

func handoff(t *testing.T) core.Handoff {
	t.Helper()
	handoff, err := core.ParseHandoff("AQAAAAAAAAAAAAAAAAAAAABuYW1l") // for "name"
	if err != nil {
		t.Fatal(err)
	}
	return handoff
}

// answers checks one result: an error that says what is wrong, or a context that has ended with
// it; anything else is zero.
func answers(t *testing.T, result reflect.Value, says string) {
	t.Helper()
	switch v := result.Interface().(type) {
	case context.Context:
		if v.Err() == nil {
			t.Error("a context that stands")
		}
		answers(t, reflect.ValueOf(context.Cause(v)), says)
		if x, ok := core.FromContext(v); ok {
			t.Errorf("it stands under %v", x)
		}
	case error:
		if !errors.Is(v, core.ErrInvalid) || !strings.Contains(v.Error(), says) {
			t.Errorf("%v does not say %q", v, says)
		}
	default:
		if !result.IsZero() || result.Type() == reflect.TypeFor[error]() {
			t.Errorf("%v", v)
		}
	}
}
