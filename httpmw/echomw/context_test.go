package echomw_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
)

func TestWhatStandsOutsideGetsItsOwnRequestBack(t *testing.T) {
	t.Parallel()
	replaces := echo.WrapMiddleware(func(next http.Handler) http.Handler { return next })
	for name, handler := range map[string]echo.HandlerFunc{
		"Returns": leaseName,
		"Wrapped": replaces(leaseName),
		"Panics":  func(echo.Context) error { panic("thrown") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := echo.New()
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					r, response, writer := c.Request(), c.Response(), c.Response().Writer
					defer func() {
						_ = recover()
						if c.Request() != r || c.Response() != response || c.Response().Writer != writer {
							t.Error("not restored")
						}
						if err := c.Request().Context().Err(); err != nil {
							t.Errorf("the context outside: %v", err)
						}
					}()
					return next(c)
				}
			})
			e.POST("/orders/:id", handler, echomw.Lock(newLocker(t), "order:{id}"))
			call(t, e, http.MethodPost, "/orders/42")
		})
	}
}

func TestAnInnerWriterStays(t *testing.T) {
	t.Parallel()
	e := echo.New()
	var mine struct{ http.ResponseWriter }
	e.POST("/orders/:id", func(c echo.Context) error {
		mine.ResponseWriter = c.Response().Writer
		c.Response().Writer = &mine
		return nil
	}, func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			err := next(c)
			if c.Response().Writer != &mine {
				t.Error("the writer that a handler has put in was taken out")
			}
			return err
		}
	}, echomw.Lock(newLocker(t), "order:{id}"))
	call(t, e, http.MethodPost, "/orders/42")
}

// echo.WrapMiddleware replaces the response and does not put it back.
func TestALossBehindWrappedMiddlewareIsAnswered(t *testing.T) {
	t.Parallel()
	e := echo.New()
	passes := echo.WrapMiddleware(func(next http.Handler) http.Handler { return next })
	e.POST("/orders/:id", func(c echo.Context) error {
		<-c.Request().Context().Done()
		return nil
	}, echomw.Lock(newLocker(t), "order:{id}", short), passes)
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
		e.POST(test.route, leaseName, echomw.Lock(locks, test.key))
		w := call(t, e, http.MethodPost, test.path)
		if w.Code != test.status || w.Code == http.StatusOK && w.Body.String() != test.name {
			t.Errorf("%s of %s: %d %s, want %d %s", test.key, test.path, w.Code, w.Body, test.status, test.name)
		}
	}
}

func TestBeforeTheRouterThereIsNoRoute(t *testing.T) {
	t.Parallel()
	locks := newLocker(t)
	for _, key := range []string{"order:{id}", "{http:route}"} {
		e := echo.New()
		e.Pre(echomw.Lock(locks, key))
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
		"key":    func() { echomw.Lock(locks, "order:{id") },
		"option": func() { echomw.Lock(locks, "order:{id}", core.WithTTL(0)) },
	} {
		func() {
			defer func() {
				if s, ok := recover().(string); !ok || !strings.HasPrefix(s, "echomw: ") {
					t.Errorf("%s: panicked with %q", name, s)
				}
			}()
			construct()
		}()
	}
}
