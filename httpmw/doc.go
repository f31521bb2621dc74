// Package httpmw holds a lock around net/http handlers: one request at a time for each order, user or
// anything else that the key names, on all machines.
//
//	mux.Handle("POST /orders/{id}/pay", httpmw.Lock(locks, "order:{id|int}")(pay))
//
// The handler runs while the name is locked. Its request's context ends, with a [*core.LostError] as
// the cause, the moment the lock can no longer be trusted. Clients get the handler's own answer. If
// the middleware has to answer, they get problem details (RFC 9457, see [Problem]):
//
//	held by someone else            409; Retry-After
//	duplicate, with WithDedup       409, already-processed
//	key missing or invalid          400
//	route lacks a source of the key 500, logged once for each route; also if the
//	                                options cannot work there, as WithDedup cannot
//	                                inside another lease of the same name
//	unavailable, Locker closed      503; Retry-After
//	request ended, nothing known    503
//	lost while the handler ran      503 if nothing was written yet, else nothing is added
//
// Packages echomw and echo5mw are the same for Echo v4 and v5, ginmw is for gin, and fibermw for Fiber. Chi, gorilla/mux,
// go-zero and kratos need no separate package: examples/recipes shows them.
//
// # Order among other middleware
//
//	recover → log, compress → timeout → authenticate → lock → handler
//
// Recover works on either side. A panic passes through after the release, and the work does not count
// as done. Outside, Recover also catches the panics of other middleware.
//
// Put a timeout that ends the request's context outside, so that it limits the wait for the lock too.
// [http.TimeoutHandler] must be outside: it answers its client and leaves the handler running.
// Outside, the lock is held until that handler has returned. Inside, the middleware would take
// TimeoutHandler's return for the end of the work, and free the name while the handler still runs.
//
// Put authentication outside. Unauthenticated callers then take no locks, and do not learn which are
// held.
//
// # The value of a source
//
// A source has one value or none. If a request repeats a source with equal values, they count as one
// value. If the values differ, the answer is 400, because the handler might read another one than the
// lock is for. A value that is missing, empty, or not of its form is also answered with 400. Paths and queries are
// unescaped once. Headers and JSON are taken as they are. A header that lists several values in one
// line is one value. Names are compared exactly, except those of headers.
//
// # Streams
//
// Flushing, hijacking, [http.ResponseController], copies from files, and HTTP/2 work as without the
// middleware. The writer is always an [http.Flusher] and an [http.Hijacker]; whether the one outside is shows in the
// error, [http.ErrNotSupported]. A body is read before its handler runs only if the key has a source in the body. Other
// bodies are streamed, and a refused client that expects "100 Continue" never sends them.
//
// A response that has been partly sent cannot be taken back. A loss after that ends the handler's
// context, and is reported as [core.EventLost] to observers, with the key as its template. The
// client sees what the handler makes of it. A handler that has to tell the client panics with
// [http.ErrAbortHandler].
package httpmw
