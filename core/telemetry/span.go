package telemetry

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/core"
)

// span adds a span that is over to the caller's trace. It took so long until now, and ended
// with an error of the given kind, "" if there was none.
func (t *Telemetry) span(operation string, s core.Subject, took time.Duration, kind string, more ...attribute.KeyValue) {
	if t.tracer == nil || !trace.SpanContextFromContext(s.Context).IsValid() {
		return
	}
	name := operation
	if s.Template != "" {
		name += " " + s.Template
	}
	attrs := append(attributes(s.Template, errorKey, kind), more...)
	_, span := t.tracer.Start(s.Context, name, trace.WithTimestamp(s.At.Add(-took)), trace.WithAttributes(attrs...))
	if failure(kind) {
		span.SetStatus(codes.Error, kind)
	}
	span.End(trace.WithTimestamp(s.At))
}

// failure says whether something went wrong: that someone else has the name, or that the work
// is done, is what locks and dedup markers are for.
func failure(kind string) bool { return kind != "" && kind != heldType && kind != duplicateType }
