package watermillmw

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/holdfast-go/holdfast/core/adapter"
)

var sources = adapter.Document[*message.Message]{
	JSON: map[string]func(*message.Message) []byte{"": func(msg *message.Message) []byte { return msg.Payload }},
	Text: map[string]func(*message.Message, string) string{
		"metadata": func(msg *message.Message, name string) string { return msg.Metadata.Get(name) },
	},
	Known: map[string]func(context.Context, *message.Message) string{
		"watermill:uuid":    func(_ context.Context, msg *message.Message) string { return msg.UUID },
		"watermill:topic":   func(ctx context.Context, _ *message.Message) string { return message.SubscribeTopicFromCtx(ctx) },
		"watermill:handler": func(ctx context.Context, _ *message.Message) string { return message.HandlerNameFromCtx(ctx) },
	},
}
