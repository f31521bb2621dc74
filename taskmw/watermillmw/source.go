package watermillmw

import (
	"context"
	"errors"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
)

func sources(name string) (adapter.Source[*message.Message], error) {
	if of, ok := strings.CutPrefix(name, "metadata:"); ok {
		return adapter.Text(func(_ context.Context, msg *message.Message) (string, error) { return msg.Metadata.Get(of), nil }), nil
	}
	switch {
	case !strings.Contains(name, ":"):
		return adapter.Typed(func(_ context.Context, msg *message.Message) (string, error) { return key.JSONValue(msg.Payload, name) }), nil
	case name == "watermill:uuid":
		return adapter.Typed(func(_ context.Context, msg *message.Message) (string, error) { return msg.UUID, nil }), nil
	case name == "watermill:topic":
		return ofContext(message.SubscribeTopicFromCtx), nil
	case name == "watermill:handler":
		return ofContext(message.HandlerNameFromCtx), nil
	default:
		return adapter.Source[*message.Message]{},
			errors.New("there are {json.path}, {metadata:name}, {watermill:uuid}, {watermill:topic} and {watermill:handler}")
	}
}

func ofContext(get func(context.Context) string) adapter.Source[*message.Message] {
	return adapter.Typed(func(ctx context.Context, _ *message.Message) (string, error) { return get(ctx), nil })
}
