// Package connectmw holds a lock around the handlers of Connect services: one call at a time for each order,
// user or anything else that the key names, on all machines.
//
//	mux.Handle(shopv1connect.NewOrdersHandler(orders, connectmw.WithLocks(locks,
//		grpcmw.WithMethod("/shop.v1.Orders/Refund", "order:{order.id}"),
//	)))
//
// The rules are those of package grpcmw: keys from fields of the message and from headers ({metadata:x-tenant}),
// annotations in the .proto file, unary calls and streams. A stream has its lock before its handler
// runs. Clients may speak Connect, gRPC or gRPC-Web.
//
// # Answers
//
// The codes are those of grpcmw too, as a [connect.Error] with the same details:
//
//	held by someone else         aborted, LOCK_HELD; RetryInfo, Retry-After
//	duplicate, with WithDedup    already_exists, LOCK_DUPLICATE
//	key missing or invalid       invalid_argument, LOCK_KEY_INVALID
//	unavailable, Locker closed   unavailable, LOCK_UNAVAILABLE
//	call ended, nothing known    canceled or deadline_exceeded
//	lost while the handler ran   aborted, LOCK_LOST
//
// A handler's own error is passed on unchanged, except one of core, also inside a connect.Error: its text has the name of
// a lock and its holder, so it is answered by the table of grpcmw.StatusFor. [connect.Error.Unwrap] leads outer interceptors to core's error. Clients are
// not told of it, nor of a lock's name or holder.
//
// Interceptors that authenticate, log or recover come before this one.
package connectmw
