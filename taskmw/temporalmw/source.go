package temporalmw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.temporal.io/sdk/activity"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
)

// sources are those of an activity's arguments.
func sources(name string) (adapter.Source[[]any], error) {
	switch name {
	case "temporal:workflow":
		return ofInfo(func(i activity.Info) string { return i.WorkflowExecution.ID }), nil
	case "temporal:activity":
		return ofInfo(func(i activity.Info) string { return i.ActivityType.Name }), nil
	case "temporal:queue":
		return ofInfo(func(i activity.Info) string { return i.TaskQueue }), nil
	}
	kind, arg, ok := strings.Cut(name, ":")
	if !ok {
		return adapter.Typed(func(_ context.Context, args []any) (string, error) {
			return member(args, 0, name, func(doc []byte) []byte { return doc })
		}), nil
	}
	if n, err := strconv.Atoi(arg); kind == "arg" && err == nil && n >= 0 && strconv.Itoa(n) == arg {
		return adapter.Typed(func(_ context.Context, args []any) (string, error) {
			return member(args, n, "value", func(doc []byte) []byte { return append(append([]byte(`{"value":`), doc...), '}') })
		}), nil
	}
	return adapter.Source[[]any]{}, errors.New(
		"there are {json.path} of the first argument, {arg:1}, {temporal:workflow}, {temporal:activity} and {temporal:queue}")
}

func ofInfo(get func(activity.Info) string) adapter.Source[[]any] {
	return adapter.Typed(func(ctx context.Context, _ []any) (string, error) { return get(activity.GetInfo(ctx)), nil })
}

// member reads a member of an argument, in the JSON that Temporal's default converter sends.
func member(args []any, i int, path string, in func([]byte) []byte) (string, error) {
	if i >= len(args) {
		return "", nil
	}
	doc, err := json.Marshal(args[i])
	if err != nil {
		return "", fmt.Errorf("%w: argument %d is not JSON", core.ErrInvalid, i)
	}
	return key.JSONValue(in(doc), path)
}
