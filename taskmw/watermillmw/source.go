package watermillmw

import (
	"fmt"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
)

// namesFunc makes the names of the locks from a message, mostly one.
type namesFunc func(*message.Message) ([]string, error)

func templateNames(template string) (namesFunc, error) {
	all, err := key.ParseAll(template)
	if err != nil {
		return nil, err
	}
	for _, parsed := range all {
		for _, source := range parsed.Sources() {
			if !known(source.Name) {
				return nil, fmt.Errorf("%w: source {%s} is none of {json.path}, {metadata:name}, {watermill:uuid}, {watermill:topic} "+
					"and {watermill:handler}", core.ErrInvalid, source.Name)
			}
		}
	}
	return func(msg *message.Message) ([]string, error) {
		names := make([]string, len(all))
		for i, parsed := range all {
			name, err := parsed.Expand(func(source string) (string, error) { return value(msg, source) })
			if err != nil {
				return nil, err
			}
			names[i] = name
		}
		return names, nil
	}, nil
}

func known(source string) bool {
	kind, _, ok := strings.Cut(source, ":")
	return !ok || kind == "metadata" || source == "watermill:uuid" || source == "watermill:topic" || source == "watermill:handler"
}

// value reads one source of a message. For Expand an empty value is a missing one.
func value(msg *message.Message, source string) (string, error) {
	if name, ok := strings.CutPrefix(source, "metadata:"); ok {
		return msg.Metadata.Get(name), nil
	}
	switch source {
	case "watermill:uuid":
		return msg.UUID, nil
	case "watermill:topic":
		return message.SubscribeTopicFromCtx(msg.Context()), nil
	case "watermill:handler":
		return message.HandlerNameFromCtx(msg.Context()), nil
	default:
		return key.JSONValue(msg.Payload, source)
	}
}
