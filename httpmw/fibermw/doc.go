// Package fibermw holds a lock around handlers of Fiber v3: one request at a time for each order, user or
// anything else that the key names, on all machines.
//
//	app.Post("/orders/:id/pay", fibermw.Lock(locks, "order:{id|int}"), pay)
//
// Keys and answers are those of package httpmw. A path parameter {id|int} is c.Params("id"), unescaped. The
// handler's context is c.Context(). It ends when the lock is lost. It does not end when the client leaves:
// fasthttp does not notice that.
//
// The lock comes right before the handlers that it is for: recover, loggers, timeouts and basic
// authentication come first. Unauthenticated callers then take no locks, and do not learn which are held.
//
// Fiber sends an answer when all handlers have returned, and so after the release. A body stream
// (c.SendStreamWriter) is written later still, without the lock, and a hijacked connection, such as a WebSocket, is
// served later still. If they need the lock, call core in them.
//
// An error of core that a handler returns is answered by the same table: its text has the name of a lock and the label
// of its holder. A *fiber.Error is the handler's own answer.
//
// With [core.WithDedup], a request is done if the handler returned nil and its status is below 400. A
// loss is answered with 503 if the handler returned an error or no answer. A complete answer stands.
package fibermw
