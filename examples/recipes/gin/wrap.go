// Package recipe has gin hold a lock around a route: net/http middleware, such as that of
// package httpmw, as a gin.HandlerFunc. Copy it.
//
//	r.POST("/orders/:id/pay", recipe.Wrap(httpmw.Lock(locks, "order:{id}")), pay)
//
// The lock is the last handler before those that it is for: gin.Recovery, loggers, timeouts
// and gin.BasicAuth stand before it. A handler's context is c.Request.Context(); gin's own
// c.Mark and c.Err are the same only with Engine.ContextWithFallback.
package recipe

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// Wrap returns a handler that runs mw around the handlers after it. {id} in a key is gin's
// c.Param("id"), and {http:route} its c.FullPath().
func Wrap(mw func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		r, w, ran := c.Request, c.Writer, false
		for _, p := range c.Params {
			r.SetPathValue(p.Key, p.Value)
		}
		r.Pattern = c.FullPath() // it is also what tells "pay" from "refund" for core.WithDedup
		mw(http.HandlerFunc(func(door http.ResponseWriter, inside *http.Request) {
			ran = true
			c.Request, c.Writer = inside, &writer{w, door}
			defer func() { c.Request, c.Writer = r, w }() // also if it panics: gin.Recovery writes
			c.Next()                                      // here, and not after the door has returned
			c.Writer.(*writer).settle(len(c.Errors) > 0)
		})).ServeHTTP(w, r)
		if !ran {
			c.Abort() // the door has answered
		}
	}
}

// writer has the door see when gin, which only remembers a status at first, really begins
// to answer.
type writer struct {
	gin.ResponseWriter

	door http.ResponseWriter
}

// WriteHeaderNow is what begins every answer of gin.
func (w *writer) WriteHeaderNow() {
	if !w.Written() {
		w.door.WriteHeader(w.Status()) // gin's own writer, behind the door's, still only remembers it
		w.ResponseWriter.WriteHeaderNow()
	}
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeaderNow()
	return w.ResponseWriter.Write(p)
}

func (w *writer) WriteString(s string) (int, error) {
	w.WriteHeaderNow()
	return w.ResponseWriter.WriteString(s)
}

func (w *writer) Flush() {
	w.WriteHeaderNow()
	w.ResponseWriter.Flush()
}

func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.door).Hijack()
}

func (w *writer) Unwrap() http.ResponseWriter { return w.door }

// settle tells the door of a failure that was not written yet: c.Status(500), or c.Error for a
// middleware outside to answer. With core.WithDedup the work is not done then.
func (w *writer) settle(failed bool) {
	switch status := w.Status(); {
	case w.Written():
	case status >= http.StatusBadRequest:
		w.door.WriteHeader(status)
	case failed:
		w.door.WriteHeader(http.StatusInternalServerError) // whoever answers may still change it
	}
}
