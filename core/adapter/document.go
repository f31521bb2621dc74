package adapter

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/core/key"
)

// Document has the sources of work that comes as JSON, such as a job or a message. Its Source is a [Sources].
type Document[R any] struct {
	// JSON are documents. The one of {order_id} and {order.id} stands under "", that of {metadata:tenant} under "metadata".
	JSON map[string]func(R) []byte
	// Text are texts, which need a form, by what stands before the colon of {header:x-tenant|text}.
	Text map[string]func(req R, name string) string
	// Known is what the framework itself knows, such as {asynq:id}.
	Known map[string]func(context.Context, R) string
}

// Source implements [Sources].
func (d Document[R]) Source(written string) (Source[R], error) {
	kind, name, ok := strings.Cut(written, ":")
	if !ok {
		kind, name = "", written
	}
	if known := d.Known[written]; known != nil {
		return Typed(func(ctx context.Context, req R) (string, error) { return known(ctx, req), nil }), nil
	}
	if document := d.JSON[kind]; document != nil {
		return Typed(func(_ context.Context, req R) (string, error) { return key.JSONValue(document(req), name) }), nil
	}
	if text := d.Text[kind]; text != nil {
		return Text(func(_ context.Context, req R) (string, error) { return text(req, name), nil }), nil
	}
	return Source[R]{}, errors.New("there are " + strings.Join(d.all(), ", "))
}

func (d Document[R]) all() (sources []string) {
	for kind := range d.JSON {
		sources = append(sources, "{"+strings.TrimPrefix(kind+":json.path", ":")+"}")
	}
	for kind := range d.Text {
		sources = append(sources, "{"+kind+":name|form}")
	}
	for name := range d.Known {
		sources = append(sources, "{"+name+"}")
	}
	slices.Sort(sources)
	return sources
}
