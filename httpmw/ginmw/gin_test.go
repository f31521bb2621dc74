package ginmw_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/ginmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestTheTable(t *testing.T) {
	t.Parallel()
	locktest.Panics(t, "ginmw: ", func() { ginmw.Lock(locktest.Memory(t), "order:{nothing") })
	mwtest.Run(t, mwtest.Framework{
		Lock: mountLock, Bind: mountBind, Streams: true,
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
	c.String(http.StatusOK, locktest.NameOf(c.Request.Context()))
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
		c.String(http.StatusOK, "%s under %s", c.Query("id"), locktest.NameOf(c.Request.Context()))
	})
	if w := mwtest.Call(t, r, http.MethodPost, "/plain?id=42"); w.Body.String() != "42 under order:42" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	goleak.VerifyTestMain(m)
}

func call(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	return mwtest.Call(t, h, http.MethodPost, target)
}

func TestHandlersOutsideGetTheirOwnRequestAndWriterBack(t *testing.T) {
	t.Parallel()
	r := gin.New()
	r.Use(func(c *gin.Context) {
		request, writer := c.Request, c.Writer
		if c.Next(); c.Request != request || c.Writer != writer {
			t.Error("request or writer was not put back")
		}
	})
	r.POST("/orders/:id", ginmw.Lock(locktest.Memory(t), "order:{id|int}"), leaseName)
	if w := call(t, r, "/orders/42"); w.Body.String() != "order:42" {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

func TestOnlyWhatSucceededIsDone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first  gin.HandlerFunc
		answer int
		done   bool
	}{
		"Nothing":              {func(*gin.Context) {}, http.StatusOK, true},
		"AStatus":              {func(c *gin.Context) { c.Status(http.StatusNoContent) }, http.StatusNoContent, true},
		"ABody":                {func(c *gin.Context) { c.String(http.StatusCreated, "made") }, http.StatusCreated, true},
		"AFailureWithBody":     {func(c *gin.Context) { c.JSON(http.StatusBadGateway, "no") }, http.StatusBadGateway, false},
		"AFailureWithout":      {func(c *gin.Context) { c.Status(http.StatusBadGateway) }, http.StatusBadGateway, false},
		"AnAbort":              {func(c *gin.Context) { c.AbortWithStatus(http.StatusTeapot) }, http.StatusTeapot, false},
		"AChangeOfMind":        {func(c *gin.Context) { c.Status(200); c.JSON(http.StatusBadGateway, "no") }, http.StatusBadGateway, false},
		"AnErrorForOutside":    {func(c *gin.Context) { _ = c.Error(errors.New("no")) }, http.StatusGone, false},
		"APanic":               {func(*gin.Context) { panic("thrown") }, http.StatusInternalServerError, false},
		"AFailureUnderAWriter": {func(c *gin.Context) { c.Writer = &zipper{c.Writer}; c.Status(http.StatusBadGateway) }, http.StatusBadGateway, false},
		"AnErrorUnderAWriter":  {func(c *gin.Context) { c.Writer = &zipper{c.Writer}; _ = c.Error(errors.New("no")) }, http.StatusGone, false},
		"ABodyUnderAWriter":    {func(c *gin.Context) { c.Writer = &zipper{c.Writer}; c.JSON(http.StatusBadGateway, "no") }, http.StatusBadGateway, false},
		"ASuccessUnderAWriter": {func(c *gin.Context) { c.Writer = &zipper{c.Writer}; c.Status(http.StatusNoContent) }, http.StatusNoContent, true},
		"AnErrorAfterAnswer":   {func(c *gin.Context) { c.String(200, "ok"); _ = c.Error(errors.New("log")) }, http.StatusOK, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			r := gin.New()
			r.Use(gin.RecoveryWithWriter(io.Discard), func(c *gin.Context) {
				c.Next()
				if len(c.Errors) > 0 && !c.Writer.Written() {
					c.JSON(http.StatusGone, c.Errors.JSON())
				}
			})
			r.POST("/orders/:id", ginmw.Lock(locktest.Memory(t), "order:{id|int}", core.WithDedup(time.Hour), core.WithDedupScope("pay")), func(c *gin.Context) {
				if calls++; calls == 1 {
					test.first(c)
				}
			})
			if w := call(t, r, "/orders/42"); w.Code != test.answer {
				t.Errorf("answered %d %s, want %d", w.Code, w.Body, test.answer)
			}
			want := map[bool]int{true: http.StatusConflict, false: http.StatusOK}[test.done]
			if w := call(t, r, "/orders/42"); w.Code != want {
				t.Errorf("again: answered %d %s, want %d", w.Code, w.Body, want)
			}
		})
	}
}

// zipper is a writer that a middleware inside the lock puts around gin's, and leaves there.
type zipper struct{ gin.ResponseWriter }

// Gin only remembers it.
func TestAStatusAloneIsNoAnswerYet(t *testing.T) {
	t.Parallel()
	r := gin.New()
	r.POST("/orders/:id", ginmw.Lock(locktest.Memory(t), "order:{id|int}", core.WithMaxHold(10*time.Millisecond)), func(c *gin.Context) {
		c.Status(http.StatusNoContent)
		<-c.Request.Context().Done()
	})
	if w := call(t, r, "/orders/42"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), httpmw.TypeLost) {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

// The status is the handler's; it is not written yet when the middleware looks.
func TestAnErrorThatIsOnlyNotedLeavesTheStatusAlone(t *testing.T) {
	t.Parallel()
	noted := func(c *gin.Context) { _ = c.Error(errors.New("the mail goes out later")) }
	for what, handlers := range map[string][]gin.HandlerFunc{
		"by the handler": {ginmw.Lock(locktest.Memory(t), "order:{id|int}"), func(c *gin.Context) { noted(c); c.Status(http.StatusNoContent) }},
		"before":         {noted, ginmw.Lock(locktest.Memory(t), "order:{id|int}"), func(c *gin.Context) { c.Status(http.StatusNoContent) }},
	} {
		r := gin.New()
		r.POST("/orders/:id", handlers...)
		if w := call(t, r, "/orders/42"); w.Code != http.StatusNoContent {
			t.Errorf("%s: %d", what, w.Code)
		}
	}
}
