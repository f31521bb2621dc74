package telemetry

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/core"
)

// Telemetry records what core reports to its observer. Several Lockers may share one Telemetry; their
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

// Observer returns the observer for [core.WithObserver]. Its functions are safe for concurrent use.
// You may wrap them if you want to receive the events too.
func (t *Telemetry) Observer() core.Observer {
	o := core.Observer{
		Acquired:    t.acquired,
		Held:        func(e core.HeldEvent) { t.refused(e.Subject, e.Took, heldType) },
		Failed:      func(e core.FailedEvent) { t.refused(e.Subject, e.Took, errorType(e.Err)) },
		Waiting:     func(e core.WaitingEvent) { t.waiting.Add(e.Context, 1, t.series.of(e.Template, "", "")) },
		Waited:      t.waited,
		Renewed:     t.renewed,
		Released:    func(e core.ReleasedEvent) { t.ended(e.Subject, e.Held, "") },
		Unconfirmed: t.releaseUnconfirmed,
		Lost:        t.leaseLost,
		Degraded:    func(e core.DegradedEvent) { t.degraded.Add(e.Context, 1, t.series.of(e.Template, "", "")) },
		Missed:      t.missed,
		Dropped:     func(events int) { t.dropped.Add(context.Background(), int64(events)) },
	}
	if t.tracer != nil {
		o.WorkContext = t.workContext
	}
	return o
}

func (t *Telemetry) acquired(e core.AcquiredEvent) {
	if e.Reentry {
		return
	}
	plain := t.series.of(e.Template, "", "")
	t.acquire.Record(e.Context, e.Took.Seconds(), plain)
	more := fenceKey.Int64(int64(e.Fence)) //nolint:gosec // G115: at most 2^53
	if e.Degraded {
		more = degradedKey.Bool(true)
	}
	t.span("acquire", e.Subject, e.Took, "", more)
	t.held.Add(e.Context, 1, plain) // last: what a provider's panic ends counts for core as not told
}

func (t *Telemetry) refused(s core.Subject, took time.Duration, kind string) {
	t.acquire.Record(s.Context, took.Seconds(), t.series.of(s.Template, errorKey, kind))
	t.span("acquire", s, took, kind)
}

func (t *Telemetry) waited(e core.WaitedEvent) {
	plain := t.series.of(e.Template, "", "")
	t.waits.Add(e.Context, 1, plain)
	t.waiting.Add(e.Context, -1, plain) // last, as above
}

func (t *Telemetry) renewed(e core.RenewedEvent) {
	t.renewals.Add(e.Context, 1, t.series.of(e.Template, errorKey, errorType(e.Err)))
}

func (t *Telemetry) releaseUnconfirmed(e core.UnconfirmedEvent) {
	t.unconfirmed.Add(e.Context, 1, t.series.of(e.Template, "", ""))
	t.ended(e.Subject, e.Held, errorType(e.Err))
}

func (t *Telemetry) leaseLost(e core.LostEvent) {
	t.lost.Add(e.Context, 1, t.series.of(e.Template, reasonKey, string(e.Reason)))
	t.ended(e.Subject, e.Held, lostType, reasonKey.String(string(e.Reason)))
}

// ended records the end of a lease, with the kind of the error if that was none as intended.
func (t *Telemetry) ended(s core.Subject, held time.Duration, kind string, more ...attribute.KeyValue) {
	t.hold.Record(s.Context, held.Seconds(), t.series.of(s.Template, errorKey, kind))
	t.endHold(s, held, kind, more...)
	t.held.Add(s.Context, -1, t.series.of(s.Template, "", "")) // last, as above
}

// missed keeps the counts of leases and waits right where events were dropped.
func (t *Telemetry) missed(e core.MissedEvent) {
	plain := t.series.of(e.Template, "", "")
	if e.Waiters != 0 {
		t.waiting.Add(context.Background(), int64(e.Waiters), plain)
	}
	if e.Leases != 0 {
		t.held.Add(context.Background(), int64(e.Leases), plain)
	}
}
