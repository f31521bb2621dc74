package ginmw_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/ginmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
)

func TestTheTable(t *testing.T) {
	t.Parallel()
	mwtest.Run(t, mwtest.Framework{Lock: mountLock, Bind: mountBind, Streams: true})
}

func config(s mwtest.Setup) ginmw.Config {
	return mwtest.Config[*gin.Context, func(c *gin.Context, p *httpmw.Problem)](s, func(c *gin.Context) *http.Request { return c.Request })
}

func mountLock(s mwtest.Setup) (http.Handler, error) {
	lock, err := ginmw.New(config(s))
	if err != nil {
		return nil, err
	}
	r := gin.New()
	r.UseRawPath = true // paths with an escaped slash have a route
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		for _, path := range []string{"/orders/:id", "/refunds/:id", "/plain"} {
			r.Handle(method, path, lock, func(c *gin.Context) { s.Answer(prompt{c.Writer}, c.Request) })
		}
	}
	return r, nil
}

func mountBind(s mwtest.Setup) (http.Handler, error) {
	var handler func(*gin.Context, *mwtest.Pay)
	if s.Bound != nil {
		handler = func(c *gin.Context, req *mwtest.Pay) { s.Bound(c.Writer, c.Request, req) }
	}
	h, err := ginmw.NewBind(config(s), handler)
	if err != nil {
		return nil, err
	}
	r := gin.New()
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		r.Handle(method, "/orders/:id", h)
		r.Handle(method, "/pay", h)
	}
	return r, nil
}

// prompt writes a status at once, as net/http does. Gin only remembers it until there is a body.
type prompt struct{ gin.ResponseWriter }

func (w prompt) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	if status >= http.StatusOK {
		w.WriteHeaderNow()
	}
}

func (w prompt) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestConstructorsPanicOnWhatCannotWork(t *testing.T) {
	t.Parallel()
	locks := mwtest.MemoryLocker(t)
	mwtest.Panics(t, "ginmw", func() { ginmw.Lock(locks, "order:{id") })
	mwtest.Panics(t, "ginmw", func() { ginmw.Bind(locks, "order:{ID}", func(*gin.Context, *mwtest.Pay) {}) })
}

// Whatever follows a bound handler runs under its lock, too.
func TestHandlersAfterABoundOneAreUnderItsLock(t *testing.T) {
	t.Parallel()
	r := gin.New()
	r.POST("/orders/:id", ginmw.Bind(mwtest.MemoryLocker(t), "order:{OrderID}", func(*gin.Context, *mwtest.Pay) {}), leaseName)
	if w := call(t, r, "/orders/42"); w.Body.String() != "order:42" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestKeyFuncAndErrorHandlerGetGinsContext(t *testing.T) {
	t.Parallel()
	lock, err := ginmw.New(ginmw.Config{
		Locker: mwtest.MemoryLocker(t),
		KeyFunc: func(c *gin.Context) (string, error) {
			if user := c.GetString("user"); user != "" {
				return "report:" + user, nil
			}
			return "", errors.New("nobody")
		},
		ErrorHandler: func(c *gin.Context, p *httpmw.Problem) { c.String(p.Status, "not for "+c.Query("as")) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r := gin.New()
	r.POST("/report", func(c *gin.Context) { c.Set("user", c.Query("user")) }, lock, leaseName)
	for target, want := range map[string]string{"/report?user=ann": "report:ann", "/report?as=stranger": "not for stranger"} {
		if w := call(t, r, target); w.Body.String() != want {
			t.Errorf("%s: %d %s, want %s", target, w.Code, w.Body, want)
		}
	}
}

// leaseName answers with the name of the lease.
func leaseName(c *gin.Context) {
	x, _ := core.FromContext(c.Request.Context())
	c.String(http.StatusOK, x.Name())
}
