package inspector_test

import (
	"reflect"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/inspector"
)

func TestTheObserverBehindARecorderIsToldEverything(t *testing.T) {
	t.Parallel()
	told := make(map[string]int)
	var next core.Observer
	all := reflect.ValueOf(&next).Elem()
	for i := range all.NumField() {
		name, f := all.Type().Field(i).Name, all.Field(i)
		f.Set(reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
			told[name]++
			return args[:f.Type().NumOut()] // the context, if there is one
		}))
	}
	recording := reflect.ValueOf(inspector.NewRecorder().Before(next))
	for i := range recording.NumField() {
		f, name := recording.Field(i), recording.Type().Field(i).Name
		if f.IsNil() {
			t.Errorf("%s is not passed on", name)
			continue
		}
		args := make([]reflect.Value, f.Type().NumIn())
		for j := range args {
			args[j] = reflect.Zero(f.Type().In(j))
		}
		f.Call(args)
		if told[name] != 1 {
			t.Errorf("%s is told %d times", name, told[name])
		}
	}
}
