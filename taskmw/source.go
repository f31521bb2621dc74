package taskmw

import (
	"context"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core/adapter"
)

var sources = adapter.Document[*asynq.Task]{
	JSON: map[string]func(*asynq.Task) []byte{"": (*asynq.Task).Payload},
	Text: map[string]func(*asynq.Task, string) string{
		"header": func(t *asynq.Task, name string) string { return t.Headers()[name] },
	},
	Known: map[string]func(context.Context, *asynq.Task) string{
		"asynq:type":  func(_ context.Context, t *asynq.Task) string { return t.Type() },
		"asynq:queue": func(ctx context.Context, _ *asynq.Task) string { return known(asynq.GetQueueName(ctx)) },
		"asynq:id":    func(ctx context.Context, _ *asynq.Task) string { return known(asynq.GetTaskID(ctx)) },
	},
}

func known(value string, _ bool) string { return value }
