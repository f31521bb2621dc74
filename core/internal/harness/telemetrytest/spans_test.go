package telemetrytest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/telemetry"
)

// request begins the span that the spans of leases belong to. It goes to no exporter.
func (b *bench) request() (context.Context, oteltrace.SpanContext) {
	ctx, span := trace.NewTracerProvider().Tracer("test").Start(b.Context(), "request")
	span.End() // before its children: they are told of later
	return ctx, span.SpanContext()
}

// spansSay fails the test unless exactly these spans were exported, all of them children of the parent, at the times since began
// that the lines say. They have the template of the bench, and a fence is "fence".
func (b *bench) spansSay(parent oteltrace.SpanContext, began time.Time, want ...string) {
	b.Helper()
	synctest.Wait()
	var got []string
	for _, s := range b.spans.GetSpans() {
		kind, of, _ := strings.Cut(s.Name, " ")
		if s.Parent.SpanID() != parent.SpanID() || s.SpanContext.TraceID() != parent.TraceID() || of != template {
			b.Errorf("%s is no child of the request, or has no template", s.Name)
		}
		line := fmt.Sprintf("%s %s-%s", kind, s.StartTime.Sub(began), s.EndTime.Sub(began))
		if !slices.Contains(s.Attributes, attribute.String("distlock.template", template)) {
			line += " no template"
		}
		for _, kv := range s.Attributes {
			switch text := string(kv.Key) + "=" + kv.Value.String(); {
			case kv.Key == "distlock.fence" && kv.Value.AsInt64() > 0:
				line += " fence"
			case text != "distlock.template="+template:
				line += " " + text
			}
		}
		if s.Status.Code == codes.Error {
			line += " failed: " + s.Status.Description
		}
		got = append(got, line)
	}
	if !slices.EqualFunc(got, want, matches) {
		b.Errorf("spans\n\t%s\nnot\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	b.spans.Reset()
}

func TestSpansAreMadeForCallersWithATraceOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	spans := telemetry.WithSpans()
	for what, row := range map[string]struct {
		opts  []telemetry.Option
		trace bool
		want  []string
	}{
		"a caller without a trace": {opts: []telemetry.Option{spans}},
		"nobody asks for spans":    {trace: true},
		"nobody asks for names":    {[]telemetry.Option{spans}, true, []string{"acquire 0s-0s fence", "hold 0s-0s"}},
		"with names": {
			[]telemetry.Option{spans, telemetry.WithNamesInSpans()}, true,
			[]string{"acquire 0s-0s distlock.name=order:42 fence", "hold 0s-0s distlock.name=order:42"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				locks := b.locker(b.store, core.WithTemplate(template), b.telemetry(row.opts...).Option())
				ctx, parent := b.Context(), oteltrace.SpanContext{}
				if row.trace {
					ctx, parent = b.request()
				}
				b.ok(locks.Do(ctx, "order:42", nothing))
				b.spansSay(parent, time.Now(), row.want...)
			})
		})
	}
}

func TestNoTemplateIsNoPartOfAName(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, _ := b.request()
		b.ok(b.locker(b.store, b.telemetry(telemetry.WithSpans()).Option()).Do(ctx, "order:42", nothing))
		if got := b.tree(); got != " > acquire\n > hold" {
			b.Error(got)
		}
	})
}
