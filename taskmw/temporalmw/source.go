package temporalmw

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"go.temporal.io/sdk/activity"

	"github.com/holdfast-go/holdfast/core/adapter"
)

var numbered = regexp.MustCompile(`^(0|[1-9]\d*)(\.|$)`)

// source is one of an activity's arguments, in the JSON that Temporal's default converter sends.
func source(name string) (adapter.Source[[]any], error) {
	if arg, ok := strings.CutPrefix(name, "arg:"); ok && !numbered.MatchString(arg) {
		return adapter.Source[[]any]{}, errors.New("an argument has a number, from 0")
	}
	return sources.Source(name)
}

var sources = adapter.Document[[]any]{
	JSON: map[string]func([]any) []byte{
		"": func(args []any) []byte {
			if len(args) == 0 {
				return []byte("{}")
			}
			return document(args[0])
		},
		"arg": func(args []any) []byte {
			all := make(map[string]any)
			for i, arg := range args {
				all[strconv.Itoa(i)] = arg
			}
			return document(all)
		},
	},
	Known: map[string]func(context.Context, []any) string{
		"temporal:workflow": func(ctx context.Context, _ []any) string { return activity.GetInfo(ctx).WorkflowExecution.ID },
		"temporal:activity": func(ctx context.Context, _ []any) string { return activity.GetInfo(ctx).ActivityType.Name },
		"temporal:queue":    func(ctx context.Context, _ []any) string { return activity.GetInfo(ctx).TaskQueue },
	},
}

// document is v as JSON, and none if it has none: then it has no usable value for a key.
func document(v any) []byte {
	doc, _ := json.Marshal(v)
	return doc
}
