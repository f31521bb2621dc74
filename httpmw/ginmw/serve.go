package ginmw

import (
	"bufio"
	"context"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/httpmw/internal/observe"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

func run(ctx context.Context, c *gin.Context, seen *observe.Response, next func() error) error {
	r, w, before := c.Request, c.Writer, len(c.Errors)
	inside := &writer{w, seen.Wrap(w)}
	c.Request, c.Writer = r.WithContext(ctx), inside
	defer func() { // also if it panics: gin.Recovery writes
		rule.HandBack(r, c.Request)
		c.Request, c.Writer = r, w
	}()
	err := next()
	inside.settle(c.Writer.Status(), len(c.Errors) > before)
	return err
}

// writer shows when gin, which only remembers a status at first, really begins to answer.
type writer struct {
	gin.ResponseWriter

	observed http.ResponseWriter
}

// WriteHeaderNow is what begins every answer of gin.
func (w *writer) WriteHeaderNow() {
	if !w.Written() {
		w.observed.WriteHeader(w.Status()) // gin's own writer, behind that one, still only remembers it
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
	return http.NewResponseController(w.observed).Hijack()
}

func (w *writer) Unwrap() http.ResponseWriter { return w.observed }

// settle shows a failure that was not written yet: c.Status(500), or c.Error for a middleware outside to answer. With
// core.WithDedup the work is not done then. status is that of the writer that the handlers have left in c: one around this
// one may have a status of its own.
func (w *writer) settle(status int, failed bool) {
	switch {
	case w.Written():
	case max(status, w.Status()) >= http.StatusBadRequest:
		w.observed.WriteHeader(max(status, w.Status()))
	case failed && status == http.StatusOK:
		w.observed.WriteHeader(http.StatusInternalServerError) // whoever answers may still change it
	}
}

// request is one that gin may have routed.
type request struct {
	rule.HTTP

	c *gin.Context
}

// Operation implements rule.Request.
func (r *request) Operation() rule.Operation {
	return rule.Operation{Method: r.R.Method, Route: r.c.FullPath()}
}

// Query implements rule.Request, as handlers read it: it is parsed once.
func (r *request) Query(name string) []string { return r.c.QueryArray(name) }

// Param implements rule.Request.
func (r *request) Param(name string) (string, error) {
	v, known := r.c.Params.Get(name)
	if !known {
		return "", rule.ErrRoute
	}
	return r.Unescaped(v)
}
