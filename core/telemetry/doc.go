// Package telemetry turns the events of leases into OpenTelemetry metrics and spans.
//
//	tel, err := telemetry.New(telemetry.WithTemplates("order:{id}"), telemetry.WithSpans())
//	locks, err := core.New(redislock.New(rdb), tel.Option())
//
// # Metrics
//
//	distlock.acquire.duration  histogram       s          how long calls took that asked for a lease
//	distlock.waits             counter         {wait}     calls that found the name held and waited
//	distlock.waiting           up-down counter {wait}     calls that wait now
//	distlock.held              up-down counter {lease}    leases held now
//	distlock.hold.duration     histogram       s          how long leases were held
//	distlock.renewals          counter         {renewal}  renewals of leases, by result
//	distlock.lost              counter         {lease}    leases lost while they were held, by reason
//	distlock.unconfirmed       counter         {release}  releases whose outcome is unknown
//	distlock.degraded          counter         {lease}    leases that exclude others in this process only
//	distlock.events.dropped    counter         {event}    events that are missing in the metrics above
//
// Each metric has the attribute distlock.template: the key template of [core.WithTemplate], which the
// middleware sets. It is absent if there is no template. No attribute contains names, labels or
// tokens, so the number of series depends on the program alone. Anything that did not succeed has
// error.type, the ErrorType of core's errors. distlock.lost has distlock.reason, a [core.Reason].
//
// A re-entry joins a lease that is already counted. Only its waits and its failures are counted.
//
// # Spans
//
// [WithSpans] adds two spans to the trace of a caller. "acquire order:{id}" lasts from the call to
// its end, and "hold order:{id}" from the grant to the release or the loss. Both are children of the
// span in the context with which the caller asked for the lease. The context that the work gets, from
// Do, AcquireAll, [core.Lease.Context] or an adapter, has the hold's span. So spans that the work starts under it are
// children of the hold. To begin the hold's span takes about a microsecond on the caller's goroutine; everything
// else is done from core's events, apart from it.
//
// docs/operate/observing.md has more, and docs/grafana has a dashboard.
package telemetry
