package taskmw

import (
	"context"
	"fmt"
	"strings"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
)

// namesFunc makes the names of the locks from a task, mostly one.
type namesFunc func(context.Context, *asynq.Task) ([]string, error)

// templateNames compiles a key of one or more templates. A value that a task lacks is an error from
// core that names its source and holds nothing of the payload.
func templateNames(keys string) (namesFunc, error) {
	all, err := key.ParseAll(keys)
	if err != nil {
		return nil, err
	}
	var each []keyFunc
	for _, parsed := range all {
		name, err := templateKey(parsed)
		if err != nil {
			return nil, err
		}
		each = append(each, name)
	}
	return func(ctx context.Context, t *asynq.Task) ([]string, error) {
		names := make([]string, len(each))
		for i, name := range each {
			var err error
			if names[i], err = name(ctx, t); err != nil {
				return nil, err
			}
		}
		return names, nil
	}, nil
}

// one makes a key function a namesFunc.
func one(name keyFunc) namesFunc {
	return func(ctx context.Context, t *asynq.Task) ([]string, error) {
		n, err := name(ctx, t)
		return []string{n}, err
	}
}

func templateKey(parsed *key.Key) (keyFunc, error) {
	var values []keyFunc // one for each source, in order
	for _, source := range parsed.Sources() {
		value, err := valueOf(source.Name)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return func(ctx context.Context, t *asynq.Task) (string, error) {
		next := 0
		return parsed.Expand(func(string) (string, error) {
			value := values[next]
			next++
			return value(ctx, t)
		})
	}, nil
}

// valueOf compiles one source. For Expand an empty value is a missing one.
func valueOf(source string) (keyFunc, error) {
	kind, name, ok := strings.Cut(source, ":")
	switch {
	case !ok:
		return func(_ context.Context, t *asynq.Task) (string, error) {
			return key.JSONValue(t.Payload(), source)
		}, nil
	case kind == "header":
		return func(_ context.Context, t *asynq.Task) (string, error) { return t.Headers()[name], nil }, nil
	case source == "asynq:type":
		return func(_ context.Context, t *asynq.Task) (string, error) { return t.Type(), nil }, nil
	case source == "asynq:queue":
		return ofContext(asynq.GetQueueName), nil
	case source == "asynq:id":
		return ofContext(asynq.GetTaskID), nil
	default:
		return nil, fmt.Errorf("%w: source {%s} is none of {json.path}, {header:name}, {asynq:type}, "+
			"{asynq:queue} and {asynq:id}", core.ErrInvalid, source)
	}
}

func ofContext(get func(context.Context) (string, bool)) keyFunc {
	return func(ctx context.Context, _ *asynq.Task) (string, error) {
		value, _ := get(ctx)
		return value, nil
	}
}
