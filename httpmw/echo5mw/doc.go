// Package echo5mw holds a lock around handlers of Echo v5: one request at a time for each order, user
// or anything else that the key names, on all machines. Package echomw is for Echo v4; its example
// of Lock is for both.
//
//	e.POST("/orders/:id/pay", pay, echo5mw.Lock(locks, "order:{id|int}"))
//
// Keys and answers are those of package httpmw. The handler's context is that of c.Request(). Outer
// middleware gets its original request back. So it sees neither the ended context nor what was put
// into the request inside, except a multipart form, whose files the server has to find.
//
// The middleware writes a refusal itself, and then returns it as an [echo.HTTPError] that wraps the
// [httpmw.Problem]. So loggers and HTTPErrorHandler see it, but cannot change it: Echo's default
// handler leaves a committed response alone, and others find its declared length used up. Use
// Config.ErrorHandler to render it differently. A handler's error is passed on unchanged, with two
// exceptions. A loss with nothing written replaces it, and wraps it. An error of core, as from a lock
// inside the handler, has names and labels in its text. If it is no [echo.HTTPError], and nothing was
// written, it is answered as [httpmw.ProblemFor] says; so is an [httpmw.Problem] that is returned.
//
// Echo runs the first middleware of a list outermost, and the lock comes last:
//
//	e.Use(middleware.Recover(), middleware.Gzip(), middleware.ContextTimeout(30*time.Second))
//	e.POST("/orders/:id/pay", pay, middleware.BasicAuth(check), echo5mw.Lock(locks, "order:{id|int}"))
//
// Unauthenticated callers then take no locks, and do not learn which are held. Package httpmw has the
// reasons. BodyLimit, CSRF and the like belong outside too. So does ContextTimeout, which then limits
// the wait for the lock as well.
package echo5mw
