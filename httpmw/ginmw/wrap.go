package ginmw

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/httpmw/internal/door"
)

// around runs the handlers after this one inside middleware of net/http.
func around(c *gin.Context, mw func(http.Handler) http.Handler, outside *http.Request) {
	r, w, ran, before := c.Request, c.Writer, false, len(c.Errors)
	for _, p := range c.Params {
		outside.SetPathValue(p.Key, p.Value)
	}
	outside.Pattern = c.FullPath()
	defer func() { door.HandBack(r, outside) }()
	mw(http.HandlerFunc(func(observed http.ResponseWriter, inside *http.Request) {
		ran = true
		c.Request, c.Writer = inside, &writer{w, observed}
		defer func() { c.Request, c.Writer = r, w }() // also if it panics: gin.Recovery writes
		c.Next()                                      // here, and not after the door has returned
		if inner, ok := c.Writer.(*writer); ok {
			inner.settle(len(c.Errors) > before)
		}
	})).ServeHTTP(w, outside)
	if !ran {
		c.Abort() // the door has answered
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
	case failed && status == http.StatusOK:
		w.door.WriteHeader(http.StatusInternalServerError) // whoever answers may still change it
	}
}
