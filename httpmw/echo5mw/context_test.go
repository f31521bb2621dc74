package echo5mw_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/echo5mw"
)

func TestWhatStandsOutsideGetsItsOwnRequestBack(t *testing.T) {
	t.Parallel()
	replaces := echo.WrapMiddleware(func(next http.Handler) http.Handler { return next })
	for name, handler := range map[string]echo.HandlerFunc{
		"Returns": leaseName,
		"Wrapped": replaces(leaseName),
		"Panics":  func(*echo.Context) error { panic("thrown") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := echo.New()
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c *echo.Context) error {
					r, response := c.Request(), c.Response().(*echo.Response)
					writer := response.ResponseWriter
					defer func() {
						_ = recover()
						if c.Request() != r || c.Response() != response || response.ResponseWriter != writer {
							t.Error("not restored")
						}
						if err := c.Request().Context().Err(); err != nil {
							t.Errorf("the context outside: %v", err)
						}
					}()
					return next(c)
				}
			})
			e.POST("/orders/:id", handler, echo5mw.Lock(newLocker(t), "order:{id}"))
			call(t, e, http.MethodPost, "/orders/42")
		})
	}
}

func TestAnInnerWriterStays(t *testing.T) {
	t.Parallel()
	e := echo.New()
	var mine struct{ http.ResponseWriter }
	e.POST("/orders/:id", func(c *echo.Context) error {
		response := c.Response().(*echo.Response)
		mine.ResponseWriter = response.ResponseWriter
		response.ResponseWriter = &mine
		return nil
	}, func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			err := next(c)
			if c.Response().(*echo.Response).ResponseWriter != &mine {
				t.Error("the writer that a handler has put in was taken out")
			}
			return err
		}
	}, echo5mw.Lock(newLocker(t), "order:{id}"))
	call(t, e, http.MethodPost, "/orders/42")
}

// echo.WrapMiddleware replaces the response and does not put it back.
func TestALossBehindWrappedMiddlewareIsAnswered(t *testing.T) {
	t.Parallel()
	e := echo.New()
	passes := echo.WrapMiddleware(func(next http.Handler) http.Handler { return next })
	e.POST("/orders/:id", func(c *echo.Context) error {
		<-c.Request().Context().Done()
		return nil
	}, echo5mw.Lock(newLocker(t), "order:{id}", short), passes)
	w := call(t, e, http.MethodPost, "/orders/42")
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), httpmw.TypeLost) {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

func TestSourcesOfARoute(t *testing.T) {
	t.Parallel()
	locks := newLocker(t)
	for _, test := range []struct {
		key, route, path string
		status           int
		name             string
	}{
		{"{http:route}", "/orders/:id", "/orders/42", http.StatusOK, "/orders/%3Aid"},
		{"file:{*}", "/files/*", "/files/a/b", http.StatusOK, "file:a/b"},
		{"file:{*}", "/files/*", "/files/a%2Fb/%63", http.StatusOK, "file:a/b/c"},
		{"file:{*}", "/files/*", "/files/", http.StatusBadRequest, ""},
		{"order:{i}", "/orders/:id", "/orders/42", http.StatusInternalServerError, ""},
		{"order:{id}", "/orders/:id/items", "/orders//items", http.StatusBadRequest, ""},
		{"order:{id}", "/orders/:id", "/orders/%2534%41", http.StatusOK, "order:%2534A"},
	} {
		e := echo.New()
		e.POST(test.route, leaseName, echo5mw.Lock(locks, test.key))
		w := call(t, e, http.MethodPost, test.path)
		if w.Code != test.status || w.Code == http.StatusOK && w.Body.String() != test.name {
			t.Errorf("%s of %s: %d %s, want %d %s", test.key, test.path, w.Code, w.Body, test.status, test.name)
		}
	}
}

// Parameters are unescaped once, whatever the router has done to them.
func TestEveryRouterConfigMakesTheSameName(t *testing.T) {
	t.Parallel()
	locks := newLocker(t)
	for _, config := range []echo.RouterConfig{
		{}, {UnescapePathParamValues: true}, {UseEscapedPathForMatching: true}, // both together unescape twice
	} {
		for path, want := range map[string]string{
			"/orders/42/x":             "42:x",
			"/orders/%34%32/%78":       "42:x",
			"/orders/%2534%41/x":       "%2534A:x",
			"/orders/%2534%41/%2578":   "%2534A:%2578",
			"/orders/%252534%41/%2534": "%252534A:%2534",
		} {
			e := echo.NewWithConfig(echo.Config{Router: echo.NewRouter(config)})
			e.POST("/orders/:id/:sku", leaseName, echo5mw.Lock(locks, "{id}:{sku}"))
			if w := call(t, e, http.MethodPost, path); w.Body.String() != want {
				t.Errorf("%+v, %s: %d %s, want %s", config, path, w.Code, w.Body, want)
			}
		}
	}
}

// Somebody's own writer is watched from above, and taken for Echo's by nobody.
func TestALossBehindAnotherWriterIsAnswered(t *testing.T) {
	t.Parallel()
	type writer struct{ http.ResponseWriter }
	for body, want := range map[string]int{"": http.StatusServiceUnavailable, "partial": http.StatusOK} {
		e := echo.New()
		e.POST("/orders/:id", func(c *echo.Context) error {
			if body != "" {
				_ = c.String(http.StatusOK, body)
			}
			<-c.Request().Context().Done()
			return nil
		}, func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				mine := &writer{c.Response()}
				c.SetResponse(mine)
				err := next(c)
				if c.Response() != http.ResponseWriter(mine) {
					t.Error("not restored")
				}
				return err
			}
		}, echo5mw.Lock(newLocker(t), "order:{id}", short))
		if w := call(t, e, http.MethodPost, "/orders/42"); w.Code != want || body != "" && w.Body.String() != body {
			t.Errorf("%q: answered %d %s", body, w.Code, w.Body)
		}
	}
}

func TestBeforeTheRouterThereIsNoRoute(t *testing.T) {
	t.Parallel()
	locks := newLocker(t)
	for _, key := range []string{"order:{id}", "{http:route}"} {
		e := echo.New()
		e.Pre(echo5mw.Lock(locks, key))
		e.POST("/orders/:id", leaseName)
		if w := call(t, e, http.MethodPost, "/orders/42"); w.Code != http.StatusInternalServerError {
			t.Errorf("%s: %d %s, want 500", key, w.Code, w.Body)
		}
	}
}

func TestLockPanicsAtConstruction(t *testing.T) {
	t.Parallel()
	locks := newLocker(t)
	for name, construct := range map[string]func(){
		"key":    func() { echo5mw.Lock(locks, "order:{id") },
		"option": func() { echo5mw.Lock(locks, "order:{id}", core.WithTTL(0)) },
	} {
		func() {
			defer func() {
				if s, ok := recover().(string); !ok || !strings.HasPrefix(s, "echo5mw: ") {
					t.Errorf("%s: panicked with %q", name, s)
				}
			}()
			construct()
		}()
	}
}

// With AutoHandleHEAD, Echo puts a writer of its own in front of the door.
func TestAHeadRequestForAGetRouteIsAnswered(t *testing.T) {
	t.Parallel()
	e := echo.NewWithConfig(echo.Config{Router: echo.NewRouter(echo.RouterConfig{AutoHandleHEAD: true})})
	locks := newLocker(t)
	e.GET("/refused", leaseName, echo5mw.Lock(locks, "{query:x}"))
	e.GET("/lost", func(c *echo.Context) error {
		<-c.Request().Context().Done()
		return nil
	}, echo5mw.Lock(locks, "job", short))
	e.GET("/passes", leaseName, echo5mw.Lock(locks, "report"))
	for path, want := range map[string]int{
		"/refused": http.StatusBadRequest, "/lost": http.StatusServiceUnavailable, "/passes": http.StatusOK,
	} {
		w := call(t, e, http.MethodHead, path)
		problem := strings.HasPrefix(w.Header().Get("Content-Type"), "application/problem+json")
		if w.Code != want || problem != (want != http.StatusOK) || w.Body.Len() > 0 {
			t.Errorf("%s: answered %d %v %s, want %d", path, w.Code, w.Header(), w.Body, want)
		}
	}
}
