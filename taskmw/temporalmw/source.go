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
	"github.com/holdfast-go/holdfast/core/key"
)

var errSource = errors.New("there are {json.path} of the first argument, {arg:1}, {temporal:workflow}, {temporal:activity} and {temporal:queue}")

// namesFunc makes the names of the locks from an activity's arguments, mostly one.
type namesFunc func(ctx context.Context, args []any) ([]string, error)

func templateNames(template string) (namesFunc, error) {
	all, err := key.ParseAll(template)
	if err != nil {
		return nil, err
	}
	for _, parsed := range all {
		for _, source := range parsed.Sources() {
			if err := check(source.Name); err != nil {
				return nil, err
			}
		}
	}
	return func(ctx context.Context, args []any) ([]string, error) {
		names := make([]string, len(all))
		for i, parsed := range all {
			name, err := parsed.Expand(func(source string) (string, error) { return value(ctx, args, source) })
			if err != nil {
				return nil, err
			}
			names[i] = name
		}
		return names, nil
	}, nil
}

func check(source string) error {
	kind, name, ok := strings.Cut(source, ":")
	switch {
	case !ok, source == "temporal:workflow", source == "temporal:activity", source == "temporal:queue":
		return nil
	case kind == "arg":
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && strconv.Itoa(n) == name {
			return nil
		}
	}
	return fmt.Errorf("%w: source {%s}: %w", core.ErrInvalid, source, errSource)
}

// value reads one source. For Expand an empty value is a missing one.
func value(ctx context.Context, args []any, source string) (string, error) {
	info := activity.GetInfo(ctx)
	switch source {
	case "temporal:workflow":
		return info.WorkflowExecution.ID, nil
	case "temporal:activity":
		return info.ActivityType.Name, nil
	case "temporal:queue":
		return info.TaskQueue, nil
	}
	if n, ok := strings.CutPrefix(source, "arg:"); ok {
		i, _ := strconv.Atoi(n)
		return member(args, i, "value", func(doc []byte) []byte { return append(append([]byte(`{"value":`), doc...), '}') })
	}
	return member(args, 0, source, func(doc []byte) []byte { return doc })
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
