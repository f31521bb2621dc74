package taskmw

import (
	"context"
	"errors"
	"strings"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
)

// namesFunc makes the names of the locks from a task, mostly one.
type namesFunc func(context.Context, *asynq.Task) ([]string, error)

// templateNames compiles a key of one or more templates. A value that a task lacks is an error from
// core that names its source and holds nothing of the payload.
func templateNames(keys string) (namesFunc, error) {
	k, err := adapter.NewKey(keys, sources)
	if err != nil {
		return nil, err
	}
	return k.Names, nil
}

// one makes a key function a namesFunc.
func one(name keyFunc) namesFunc {
	return func(ctx context.Context, t *asynq.Task) ([]string, error) {
		n, err := name(ctx, t)
		return []string{n}, err
	}
}

func sources(source string) (adapter.Source[*asynq.Task], error) {
	kind, name, ok := strings.Cut(source, ":")
	switch {
	case !ok:
		return adapter.Typed(func(_ context.Context, t *asynq.Task) (string, error) {
			return key.JSONValue(t.Payload(), source)
		}), nil
	case kind == "header":
		return adapter.Text(func(_ context.Context, t *asynq.Task) (string, error) { return t.Headers()[name], nil }), nil
	case source == "asynq:type":
		return adapter.Typed(func(_ context.Context, t *asynq.Task) (string, error) { return t.Type(), nil }), nil
	case source == "asynq:queue":
		return ofContext(asynq.GetQueueName), nil
	case source == "asynq:id":
		return ofContext(asynq.GetTaskID), nil
	default:
		return adapter.Source[*asynq.Task]{}, errors.New("there are {json.path}, {header:name}, {asynq:type}, {asynq:queue} and {asynq:id}")
	}
}

func ofContext(get func(context.Context) (string, bool)) adapter.Source[*asynq.Task] {
	return adapter.Typed(func(ctx context.Context, _ *asynq.Task) (string, error) {
		value, _ := get(ctx)
		return value, nil
	})
}
