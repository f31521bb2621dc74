// Package httpmw holds a lock around net/http handlers: one request at a time for each order,
// user or whatever the key names, on all machines.
//
//	mux.Handle("POST /orders/{id}/pay", httpmw.Lock(locks, "order:{id}")(pay))
//
// The handler runs while the name is locked; its request's context ends, with a [*core.LostError]
// as the cause, the moment the lock can no longer be trusted. Clients get the handler's own
// answer or, where the door has to give one, problem details (RFC 9457, see [Problem]):
//
//	held by someone else            409 or, by option, 423; Retry-After
//	done before, with WithDedup     409, already-processed
//	key missing or invalid          400
//	route lacks a source of the key 500, logged once for each route; also if the
//	                                options cannot work there, as WithDedup cannot
//	                                inside another lease of the same name
//	unavailable, Locker closed      503; Retry-After
//	request ended, nothing known    503
//	lost while the handler ran      503 if nothing was written yet, else nothing is added
//
// Packages echomw and echo5mw are the same for Echo v4 and v5. Chi and gin need no package of
// their own: examples/recipes shows both.
//
// # Where it stands among other middleware
//
//	recover → log, compress → timeout → authenticate → lock → handler
//
// Recover works on either side: a panic passes through after the release, and the work is not
// done. Outside, it also catches what others throw.
//
// A timeout that ends the request's context goes outside, so that it bounds the wait for the
// lock too. [http.TimeoutHandler] has to: it answers its client and leaves the handler running.
// Outside, the lock is held until that handler has returned; inside, the door would take
// TimeoutHandler's return for the end of the work, and free the name underneath it.
//
// Authentication goes outside: strangers then take no locks, and do not learn which are held.
//
// # What a source's value is
//
// A source has one value or none. Where a request repeats it, equal repeats are one value, and
// repeats that differ are answered with 400: the handler might read another one than the lock
// is for. So are a missing value and an empty one. Paths, queries and URL-encoded forms are
// unescaped once; headers, cookies, multipart forms and JSON are taken as they are. A header that
// lists several values in one line is one value. Names are compared exactly but for those of
// headers.
//
// # Streams
//
// Flushing, hijacking, [http.ResponseController], copies from files, and HTTP/2 work as without
// the door. A body is read before its handler runs only if the key has a source in it; others are
// streamed, and a refused client that expects "100 Continue" never sends them.
//
// What has begun to be sent cannot be taken back. A loss after that ends the handler's context,
// and is seen by the Lost function of [core.Observer], with the key as its template; the client
// sees what the handler makes of it. One that has to tell panics with [http.ErrAbortHandler].
package httpmw
