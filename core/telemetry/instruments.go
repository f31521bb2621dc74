package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// scope is the name of the meter and the tracer.
const scope = "github.com/holdfast-go/holdfast/core/telemetry"

// instruments are all that is exported as metrics.
type instruments struct {
	acquire     metric.Float64Histogram
	hold        metric.Float64Histogram
	held        metric.Int64UpDownCounter
	waiting     metric.Int64UpDownCounter
	waits       metric.Int64Counter
	renewals    metric.Int64Counter
	lost        metric.Int64Counter
	degraded    metric.Int64Counter
	unconfirmed metric.Int64Counter
	dropped     metric.Int64Counter
}

// boundaries, in seconds, reach from one round trip in a data centre to a minute: below, a
// lock is as good as free; above, it is a queue or a job.
var boundaries = metric.WithExplicitBucketBoundaries(
	.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60)

func newInstruments(m metric.Meter) (i instruments, err error) {
	var errs [10]error
	i.acquire, errs[0] = m.Float64Histogram("distlock.acquire.duration", metric.WithUnit("s"), boundaries,
		metric.WithDescription("How long calls took that asked for a lease, waiting included."))
	i.waits, errs[1] = m.Int64Counter("distlock.waits", metric.WithUnit("{wait}"),
		metric.WithDescription("Calls that found the name held and waited for it."))
	i.held, errs[2] = m.Int64UpDownCounter("distlock.held", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that are held now."))
	i.waiting, errs[9] = m.Int64UpDownCounter("distlock.waiting", metric.WithUnit("{wait}"),
		metric.WithDescription("Calls that wait now for a name that is held."))
	i.hold, errs[3] = m.Float64Histogram("distlock.hold.duration", metric.WithUnit("s"), boundaries,
		metric.WithDescription("How long leases were held, from the grant to the release or the loss."))
	i.renewals, errs[4] = m.Int64Counter("distlock.renewals", metric.WithUnit("{renewal}"),
		metric.WithDescription("Renewals of leases, by how they went."))
	i.lost, errs[5] = m.Int64Counter("distlock.lost", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that were lost while they were held, by why."))
	i.unconfirmed, errs[6] = m.Int64Counter("distlock.unconfirmed", metric.WithUnit("{release}"),
		metric.WithDescription("Releases of which nobody knows whether they took effect: the name comes free by its TTL at the latest."))
	i.dropped, errs[7] = m.Int64Counter("distlock.events.dropped", metric.WithUnit("{event}"),
		metric.WithDescription("Events that came faster than they could be recorded, and are missing in all of these but distlock.held and distlock.waiting."))
	i.degraded, errs[8] = m.Int64Counter("distlock.degraded", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that exclude others in this process only, since the lock service could not answer."))
	return i, errors.Join(errs[:]...)
}

// prime makes the series that the templates will have.
func (t *Telemetry) prime(templates []string) {
	ctx := context.Background()
	t.dropped.Add(ctx, 0)
	for _, template := range templates {
		plain := t.series.of(template, "", "")
		t.held.Add(ctx, 0, plain)
		t.waiting.Add(ctx, 0, plain)
		t.waits.Add(ctx, 0, plain)
		t.unconfirmed.Add(ctx, 0, plain)
		t.degraded.Add(ctx, 0, plain)
		t.renewals.Add(ctx, 0, plain)
		for _, failure := range []string{lostType, unavailableType} {
			t.renewals.Add(ctx, 0, t.series.of(template, errorKey, failure))
		}
		for _, reason := range reasons() {
			t.lost.Add(ctx, 0, t.series.of(template, reasonKey, string(reason)))
		}
	}
}
