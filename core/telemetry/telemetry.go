package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/core"
)

// Telemetry records what happens to leases. Several Lockers may share one Telemetry; their
// figures then add up.
type Telemetry struct {
	instruments

	series series
	tracer trace.Tracer // nil without WithSpans
	names  bool         // spans have them
}

// New returns a Telemetry. It returns [core.ErrInvalid] for a nil option, and an error if the meter
// provider refuses an instrument.
//
// Call it after the program has set up OpenTelemetry. Anything recorded before otel.SetMeterProvider
// is lost, including the zeros of [WithTemplates].
func New(opts ...Option) (*Telemetry, error) {
	var c config
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("%w option: nil", core.ErrInvalid)
		}
		o.apply(&c)
	}
	if c.meters == nil {
		c.meters = otel.GetMeterProvider()
	}
	if c.tracers == nil {
		c.tracers = otel.GetTracerProvider()
	}
	instruments, err := newInstruments(c.meters.Meter(scope))
	if err != nil {
		return nil, err
	}
	t := &Telemetry{instruments: instruments, names: c.names}
	if c.spans {
		t.tracer = c.tracers.Tracer(scope)
	}
	t.prime(c.templates)
	return t, nil
}

// Option returns the option for [core.New] that has t record what happens.
func (t *Telemetry) Option() core.NewOption {
	if t.tracer == nil {
		return core.WithObserver(t.Observe)
	}
	return core.Options(core.WithObserver(t.Observe), core.WithWorkContext(t.workContext))
}

// Observe records one event. It is what [Telemetry.Option] gives to core, and safe for concurrent use.
func (t *Telemetry) Observe(e core.Event) {
	switch e.Kind {
	case core.EventAcquired:
		t.acquired(e)
	case core.EventHeld:
		t.refused(e, heldType)
	case core.EventFailed:
		t.refused(e, errorType(e.Err))
	case core.EventWaiting:
		t.waiting.Add(e.Context, 1, t.plain(e))
	case core.EventWaited:
		t.waits.Add(e.Context, 1, t.plain(e))
		t.waiting.Add(e.Context, -1, t.plain(e)) // last: what a provider's panic ends counts for core as not told
	case core.EventRenewed:
		t.renewals.Add(e.Context, 1, t.series.of(e.Template, errorKey, errorType(e.Err)))
	case core.EventReleased:
		t.ended(e, "")
	case core.EventUnconfirmed:
		t.unconfirmed.Add(e.Context, 1, t.plain(e))
		t.ended(e, errorType(e.Err))
	case core.EventDegraded:
		t.degraded.Add(e.Context, 1, t.plain(e))
	case core.EventLost:
		t.lost.Add(e.Context, 1, t.series.of(e.Template, reasonKey, string(e.Reason)))
		t.ended(e, lostType, reasonKey.String(string(e.Reason)))
	case core.EventMissed:
		t.missed(e)
	case core.EventDropped:
		t.dropped.Add(context.Background(), int64(e.Dropped))
	case core.EventLongWait, core.EventLimited: // of the log only
	}
}

// plain is the series with the template alone.
func (t *Telemetry) plain(e core.Event) metric.MeasurementOption {
	return t.series.of(e.Template, "", "")
}

func (t *Telemetry) acquired(e core.Event) {
	if e.Reentry {
		return
	}
	t.acquire.Record(e.Context, e.Took.Seconds(), t.plain(e))
	more := fenceKey.Int64(int64(e.Fence)) //nolint:gosec // G115: at most 2^53
	if e.Degraded {
		more = degradedKey.Bool(true)
	}
	t.span("acquire", e, e.Took, "", more)
	t.held.Add(e.Context, 1, t.plain(e)) // last, as above
}

func (t *Telemetry) refused(e core.Event, kind string) {
	t.acquire.Record(e.Context, e.Took.Seconds(), t.series.of(e.Template, errorKey, kind))
	t.span("acquire", e, e.Took, kind)
}

// ended records the end of a lease, with the kind of the error if that was none as intended.
func (t *Telemetry) ended(e core.Event, kind string, more ...attribute.KeyValue) {
	t.hold.Record(e.Context, e.Held.Seconds(), t.series.of(e.Template, errorKey, kind))
	t.endHold(e, kind, more...)
	t.held.Add(e.Context, -1, t.plain(e)) // last, as above
}

// missed keeps the counts of leases and waits right where events were dropped.
func (t *Telemetry) missed(e core.Event) {
	if e.Waiters != 0 {
		t.waiting.Add(context.Background(), int64(e.Waiters), t.plain(e))
	}
	if e.Leases != 0 {
		t.held.Add(context.Background(), int64(e.Leases), t.plain(e))
	}
}
