package taskmw

import (
	"context"
	"errors"
	"strings"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
)

func sources(name string) (adapter.Source[*asynq.Task], error) {
	kind, header, ok := strings.Cut(name, ":")
	switch {
	case !ok:
		return of(func(_ context.Context, t *asynq.Task) (string, error) { return key.JSONValue(t.Payload(), name) }), nil
	case kind == "header":
		return adapter.Text(func(_ context.Context, t *asynq.Task) (string, error) { return t.Headers()[header], nil }), nil
	case name == "asynq:type":
		return of(func(_ context.Context, t *asynq.Task) (string, error) { return t.Type(), nil }), nil
	case name == "asynq:queue":
		return of(func(ctx context.Context, _ *asynq.Task) (string, error) { return known(asynq.GetQueueName(ctx)), nil }), nil
	case name == "asynq:id":
		return of(func(ctx context.Context, _ *asynq.Task) (string, error) { return known(asynq.GetTaskID(ctx)), nil }), nil
	default:
		return adapter.Source[*asynq.Task]{}, errors.New("there are {json.path}, {header:name|form}, {asynq:type}, {asynq:queue} and {asynq:id}")
	}
}

func of(read func(context.Context, *asynq.Task) (string, error)) adapter.Source[*asynq.Task] {
	return adapter.Typed(read)
}

func known(value string, _ bool) string { return value }
