package telemetry

import (
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Option configures a [Telemetry].
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	meters    metric.MeterProvider
	tracers   trace.TracerProvider
	templates []string
	spans     bool
}

// WithMeterProvider sets where metrics go. The default, also chosen by nil, is
// otel.GetMeterProvider() at the time of [New]; a repeat replaces the earlier one.
func WithMeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(c *config) { c.meters = p })
}

// WithTracerProvider sets where the spans of [WithSpans] go; without that it does nothing.
// The default, also chosen by nil, is otel.GetTracerProvider() at the time of [New]; a repeat
// replaces the earlier one.
func WithTracerProvider(p trace.TracerProvider) Option {
	return optionFunc(func(c *config) { c.tracers = p })
}

// WithTemplates names the key templates that the program uses, as its doors and
// [core.WithTemplate] have them. Their counters exist from the start, with the value 0 for
// each reason of a loss and each outcome of a renewal: a rate, and so an alert, then sees the
// first loss too. Without it a series begins with its first event. Histograms always do.
//
// The default is none; "" stands for leases without a template. A repeat adds to the earlier
// ones. Templates that are not named are exported all the same.
func WithTemplates(templates ...string) Option {
	return optionFunc(func(c *config) { c.templates = append(c.templates, templates...) })
}

// WithSpans adds the spans "acquire" and "hold" to the traces of callers. A call whose context
// has no span gets none: its two would be unrelated traces. What is recorded is the tracer
// provider's sampler's decision.
//
// The default is none. A repeat does nothing.
func WithSpans() Option {
	return optionFunc(func(c *config) { c.spans = true })
}
