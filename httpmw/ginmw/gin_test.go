package ginmw_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/ginmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestTheTable(t *testing.T) {
	t.Parallel()
	mwtest.Run(t, mwtest.Framework{
		Package: "ginmw", Lock: mountLock, Bind: mountBind, Streams: true,
		Panics: []func(*core.Locker, string){
			func(l *core.Locker, key string) { ginmw.Lock(l, key) },
			func(l *core.Locker, key string) { ginmw.Bind(l, key, func(*gin.Context, *mwtest.Pay) {}) },
		},
		Routes: []mwtest.Route{
			{Key: "file:{path|text}", Route: "/files/*path", Path: "/files/a/b", Status: http.StatusOK, Name: "file:/a/b"},
			{Key: "order:{x|int}", Route: "/orders/:id", Path: "/orders/42", Status: http.StatusInternalServerError},
		},
	})
}

func config(s mwtest.Setup) ginmw.Config {
	c := mwtest.Config[*gin.Context, func(c *gin.Context, p *httpmw.Problem)](s, func(c *gin.Context) *http.Request { return c.Request })
	if s.ErrorHandler != nil {
		c.ErrorHandler = func(c *gin.Context, p *httpmw.Problem) { s.ErrorHandler(c.Writer, c.Request, p) }
	}
	return c
}

func mountLock(s mwtest.Setup) (http.Handler, error) {
	lock, err := ginmw.New(config(s))
	if err != nil {
		return nil, err
	}
	r := gin.New()
	r.UseRawPath = true // paths with an escaped slash have a route
	for _, path := range s.Paths(":id") {
		r.Match([]string{http.MethodGet, http.MethodPost, http.MethodPut}, path, lock, func(c *gin.Context) { s.Answer(prompt{c.Writer}, c.Request) })
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
	r.Any("/orders/:id", h)
	r.Any("/pay", h)
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

// Whatever follows a bound handler runs under its lock, too.
func TestHandlersAfterABoundOneAreUnderItsLock(t *testing.T) {
	t.Parallel()
	r := gin.New()
	r.POST("/orders/:id", ginmw.Bind(locktest.Memory(t), "order:{OrderID}", func(*gin.Context, *mwtest.Pay) {}), leaseName)
	if w := call(t, r, "/orders/42"); w.Body.String() != "order:42" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// leaseName answers with the name of the lease.
func leaseName(c *gin.Context) {
	x, _ := core.FromContext(c.Request.Context())
	c.String(http.StatusOK, x.Name())
}

// Gin parses the query once, so what middleware outside does to the URL later is not what handlers read.
func TestAQueryIsWhatGinHasMadeOfIt(t *testing.T) {
	t.Parallel()
	r := gin.New()
	r.Use(func(c *gin.Context) {
		_ = c.Query("id")
		c.Request.URL.RawQuery = "id=43"
	})
	r.POST("/plain", ginmw.Lock(locktest.Memory(t), "order:{query:id|int}"), func(c *gin.Context) {
		x, _ := core.FromContext(c.Request.Context())
		c.String(http.StatusOK, "%s under %s", c.Query("id"), x.Name())
	})
	if w := mwtest.Call(t, r, http.MethodPost, "/plain?id=42"); w.Body.String() != "42 under order:42" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
