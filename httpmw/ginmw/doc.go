// Package ginmw holds a lock around handlers of gin: one request at a time for each order, user or
// anything else that the key names, on all machines.
//
//	r.POST("/orders/:id/pay", ginmw.Lock(locks, "order:{id|int}"), pay)
//
// Keys and answers are those of package httpmw. A path parameter {id|int} is c.Param("id"). The handler's context is c.Request.Context(). Gin's own c.Done and c.Err are the same only with
// Engine.ContextWithFallback.
//
// The lock is the last handler before those that it is for: gin.Recovery, loggers, timeouts and
// gin.BasicAuth come first. Unauthenticated callers then take no locks, and do not learn which are held.
// If the lock refuses a request, the chain is aborted.
//
// With [core.WithDedup], a request is done if its status is below 400. If handlers leave an error in
// c.Errors and write no answer, it is not done.
package ginmw
