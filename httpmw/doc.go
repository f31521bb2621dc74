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
// Packages echomw and echo5mw are the same for Echo v4 and v5.
package httpmw
