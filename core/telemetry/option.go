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
	names     bool
}

// WithMeterProvider sets where metrics go. The default, also for nil, is otel.GetMeterProvider() at
// the time of [New]. If it is given twice, the last one wins.
func WithMeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(c *config) { c.meters = p })
}

// WithTracerProvider sets where the spans of [WithSpans] go. Without WithSpans it does nothing. The
// default, also for nil, is otel.GetTracerProvider() at the time of [New]. If it is given twice, the
// last one wins.
func WithTracerProvider(p trace.TracerProvider) Option {
	return optionFunc(func(c *config) { c.tracers = p })
}

// WithTemplates names the key templates that the program uses in its middleware and with
// [core.WithTemplate]. Their counters exist from the start, with the value 0 for each reason of a
// loss and each outcome of a renewal. A rate, and so an alert, then sees the first loss too. Without
// this option a series begins with its first event. Histograms always do.
//
// The default is none. "" stands for leases without a template. If it is given twice, the templates
// add up. Templates that are not named are exported all the same.
func WithTemplates(templates ...string) Option {
	return optionFunc(func(c *config) { c.templates = append(c.templates, templates...) })
}

// WithSpans adds the spans "acquire" and "hold" to the traces of callers; spans of the work are children
// of "hold". If the context of a call
// has no span, no spans are created: the two would be unrelated traces. The sampler of the tracer
// provider decides what is recorded.
//
// The default is no spans. Giving the option twice changes nothing.
func WithSpans() Option {
	return optionFunc(func(c *config) { c.spans = true })
}

// WithNamesInSpans gives the spans of [WithSpans] the attribute distlock.name. Names come from
// requests, so they can be personal data. Metrics never have them.
//
// The default is spans without names. Giving the option twice changes nothing.
func WithNamesInSpans() Option {
	return optionFunc(func(c *config) { c.names = true })
}
