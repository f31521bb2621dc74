package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// Message and Handler are those of a framework that Holdfast has no middleware for.
type (
	Message struct {
		Header map[string]string
		Body   []byte // JSON
	}
	Handler func(context.Context, *Message) error
)

// Again tells the framework when to deliver a message again.
type Again struct{ In time.Duration }

func (Again) Error() string { return "again" }

// ErrPoison tells the framework that no delivery will help.
var ErrPoison = errors.New("poison")

// Lock is the middleware.
func Lock(locks *core.Locker, template string, opts ...core.Option) (func(Handler) Handler, error) {
	k, err := adapter.NewKey(template, document.Source)
	if err != nil {
		return nil, err
	}
	rule, err := adapter.NewRule(locks, k, append([]core.Option{core.WithWait(0)}, opts...)...)
	if err != nil {
		return nil, err
	}
	return func(next Handler) Handler {
		return func(ctx context.Context, m *Message) error {
			out := rule.Run(ctx, m, func(ctx context.Context) error { return next(ctx, m) })
			switch out.Reason {
			case adapter.Held, adapter.Stopping:
				return Again{out.RetryAfter()}
			case adapter.Duplicate:
				return nil
			case adapter.BadKey, adapter.Misconfigured:
				return fmt.Errorf("%w: %w", ErrPoison, out.Err)
			default:
				return out.Join()
			}
		}
	}, nil
}

var document = adapter.Document[*Message]{
	JSON: map[string]func(*Message) []byte{"": func(m *Message) []byte { return m.Body }},
	Text: map[string]func(*Message, string) string{"header": func(m *Message, name string) string { return m.Header[name] }},
}

// Middleware for a framework of messages.
func Example() {
	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	_, err = Lock(locks, "order:{header:order}")
	fmt.Println(err)

	lock, err := Lock(locks, "order:{header:order|int} tenant:{tenant.id}")
	if err != nil {
		panic(err)
	}
	ship := lock(func(ctx context.Context, _ *Message) error {
		_, err := core.FenceFor(ctx, "order:42")
		fmt.Println("shipped,", err)
		return nil
	})
	fmt.Println(ship(ctx, &Message{Header: map[string]string{"order": "042"}, Body: []byte(`{"tenant":{"id":"acme"}}`)}))
	fmt.Println(ship(ctx, &Message{Header: map[string]string{"order": "42"}}))
	// Output:
	// holdfast: invalid: key "order:{header:order}": {header:order}: text has no type, so for a path, query or header value the template gives it: {header:order|int}, {header:order|uuid} or {header:order|text}
	// shipped, <nil>
	// <nil>
	// poison: holdfast: key "tenant:{tenant.id}": {tenant.id}: holdfast: invalid JSON for "tenant.id": not exactly one JSON value in UTF-8
}
