package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/core"
)

// span adds a span that is over to the caller's trace. It took so long until now, and ended
// with an error of the given kind, "" if there was none.
func (t *Telemetry) span(operation string, e core.Event, took time.Duration, kind string, more ...attribute.KeyValue) {
	if t.tracer == nil || !trace.SpanContextFromContext(e.Context).IsValid() {
		return
	}
	_, span := t.start(e.Context, operation, e, e.At.Add(-took))
	end(span, e.At, kind, more...)
}

// start begins a span.
func (t *Telemetry) start(ctx context.Context, operation string, e core.Event, at time.Time) (context.Context, trace.Span) {
	name := operation
	if e.Template != "" {
		name += " " + e.Template
	}
	attrs := attributes(e.Template, "", "")
	if t.names {
		attrs = append(attrs, nameKey.String(e.Name))
	}
	return t.tracer.Start(ctx, name, trace.WithTimestamp(at), trace.WithAttributes(attrs...)) //nolint:spancheck // its caller ends it
}

func end(span trace.Span, at time.Time, kind string, more ...attribute.KeyValue) {
	if kind != "" {
		span.SetAttributes(errorKey.String(kind))
	}
	span.SetAttributes(more...)
	if failure(kind) {
		span.SetStatus(codes.Error, kind)
	}
	span.End(trace.WithTimestamp(at))
}

// holdKey finds, in the context of the work, the span of the lease that it runs under.
type holdKey struct{ of *Telemetry }

type hold struct {
	trace.Span

	name string
}

// workContext begins the span of a lease, so that the work's own spans are its children.
func (t *Telemetry) workContext(ctx context.Context, e core.Event) context.Context {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	ctx, span := t.start(ctx, "hold", e, e.At)
	return context.WithValue(ctx, holdKey{t}, &hold{span, e.Name})
}

// endHold ends the span of a lease. A lease that was given back or lost before anybody got it has none yet.
func (t *Telemetry) endHold(e core.Event, kind string, more ...attribute.KeyValue) {
	if h, ok := e.Context.Value(holdKey{t}).(*hold); ok && h.name == e.Name { // else it is that of an outer lease
		end(h.Span, e.At, kind, more...)
		return
	}
	t.span("hold", e, e.Held, kind, more...)
}

// failure says whether something went wrong: that someone else has the name, or that the work
// is done, is what locks and dedup markers are for.
func failure(kind string) bool { return kind != "" && kind != heldType && kind != duplicateType }
