// Package telemetry makes OpenTelemetry metrics and spans of what happens to leases.
//
//	tel, err := telemetry.New(telemetry.WithTemplates("order:{id}"), telemetry.WithSpans())
//	locks, err := core.New(redislock.New(rdb), core.WithObserver(tel.Observer()))
//
// # Metrics
//
//	distlock.acquire.duration  histogram       s          how long calls took that asked for a lease
//	distlock.waits             counter         {wait}     calls that found the name held and waited
//	distlock.held              up-down counter {lease}    leases held now
//	distlock.hold.duration     histogram       s          how long leases were held
//	distlock.renewals          counter         {renewal}  renewals of leases, by how they went
//	distlock.lost              counter         {lease}    leases lost while they were held, by why
//	distlock.unconfirmed       counter         {release}  releases of which nobody knows the outcome
//	distlock.degraded          counter         {lease}    leases that exclude others in this process only
//	distlock.events.dropped    counter         {event}    events that did not get into the above
//
// Each has the attribute distlock.template, the key template of [core.WithTemplate], which
// doors set; it is absent where there is none. Names, labels and tokens are in no attribute:
// the number of series depends on the program alone. What did not succeed has error.type, the
// ErrorType of core's errors; distlock.lost has distlock.reason, a [core.Reason].
//
// A re-entry joins a lease that is counted already: that it waited, or failed, is counted, and
// nothing else.
//
// # Spans
//
// [WithSpans] adds two spans to the trace of a caller: "acquire order:{id}", from the call to
// its end, and "hold order:{id}", from the grant to the release or the loss. Both are children
// of the span in the context that the lease was asked for with. They are made once they are
// over, from the times in core's events: a span that the work itself begins is their sibling,
// not their child.
//
// docs/observing.md has more, and docs/grafana a dashboard.
package telemetry
