// Package echo5mw holds a lock around handlers of Echo v5: one request at a time for each order,
// user or whatever the key names, on all machines. Package echomw is for Echo v4.
//
//	e.POST("/orders/:id/pay", pay, echo5mw.Lock(locks, "order:{id}"))
//
// Keys and the table of answers are those of package httpmw. The handler's context is that of
// c.Request(); what stands outside the door finds its own request there again, so it sees neither
// the ended context nor what was put into the request inside, but for a multipart form, whose
// files the server has to find.
//
// A refusal is written by the door, as the table says, and then returned as an [echo.HTTPError]
// that wraps the [httpmw.Problem]. So loggers and HTTPErrorHandler see it, and cannot change
// it: Echo's default handler leaves a committed response alone, and others find its declared
// length used up. Config.ErrorHandler is there to render it differently. A handler's error goes
// on as it is, an error of a lock too; only a loss with nothing written takes its place, with it
// inside.
//
// Echo runs the first middleware of a list outermost, and the lock comes last:
//
//	e.Use(middleware.Recover(), middleware.Gzip(), middleware.ContextTimeout(30*time.Second))
//	e.POST("/orders/:id/pay", pay, middleware.BasicAuth(check), echo5mw.Lock(locks, "order:{id}"))
//
// Strangers then take no locks, and do not learn which are held. Package httpmw has the reasons.
// BodyLimit, CSRF and the like stand outside too; so does ContextTimeout, which then bounds the
// wait for the lock as well.
package echo5mw
