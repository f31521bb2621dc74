package echomw_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
	"github.com/holdfast-go/holdfast/httpmw/internal/doortest"
)

// quiet is middleware.Recover that does not print stacks.
func quiet() echo.MiddlewareFunc {
	return middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true})
}

func TestAPanicReleasesAndIsNotDoneOnEitherSideOfRecover(t *testing.T) {
	t.Parallel()
	for name, chain := range map[string]func(lock echo.MiddlewareFunc) []echo.MiddlewareFunc{
		"Outside": func(lock echo.MiddlewareFunc) []echo.MiddlewareFunc { return []echo.MiddlewareFunc{quiet(), lock} },
		"Inside":  func(lock echo.MiddlewareFunc) []echo.MiddlewareFunc { return []echo.MiddlewareFunc{lock, quiet()} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			e := echo.New()
			e.POST("/orders/:id", func(c echo.Context) error {
				if calls++; calls == 1 {
					panic("thrown")
				}
				return leaseName(c)
			}, chain(echomw.Lock(newLocker(t), "order:{id}", core.WithDedup(time.Hour)))...)
			for i, want := range []int{http.StatusInternalServerError, http.StatusOK, http.StatusConflict} {
				if w := call(t, e, http.MethodPost, "/orders/42"); w.Code != want {
					t.Errorf("request %d: %d %s, want %d", i, w.Code, w.Body, want)
				}
			}
		})
	}
}

func TestContextTimeoutBoundsTheWaitAndTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := newLocker(t)
		e := echo.New()
		e.Use(middleware.ContextTimeout(20 * time.Millisecond))
		e.POST("/orders/:id", func(c echo.Context) error {
			<-c.Request().Context().Done()
			if cause := context.Cause(c.Request().Context()); !errors.Is(cause, context.DeadlineExceeded) {
				t.Errorf("cause: %v", cause)
			}
			return c.Request().Context().Err()
		}, echomw.Lock(locks, "order:{id}", core.WithWait(core.WaitForever)))
		err := locks.Do(t.Context(), "order:42", func(context.Context) error {
			w := call(t, e, http.MethodPost, "/orders/42")
			if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), httpmw.TypeHeld) {
				t.Errorf("held: answered %d %s", w.Code, w.Body)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if w := call(t, e, http.MethodPost, "/orders/42"); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "holdfast") {
			t.Errorf("worked too long: answered %d %s, want Echo's 503", w.Code, w.Body)
		}
		if err := locks.Do(t.Context(), "order:42", func(context.Context) error { return nil }, core.WithWait(0)); err != nil {
			t.Errorf("not released: %v", err)
		}
	})
}

func TestStrangersDoNotReachTheLock(t *testing.T) {
	t.Parallel()
	store := &doortest.Backend{Store: memlock.New()}
	e := echo.New()
	auth := middleware.BasicAuth(func(user, password string, _ echo.Context) (bool, error) {
		return user == "ann" && password == "right", nil
	})
	e.POST("/orders/:id", leaseName, auth, echomw.Lock(doortest.NewLocker(t, store), "order:{id}"))
	store.Down.Store(true) // who reaches the lock gets 503
	for password, want := range map[string]int{"wrong": http.StatusUnauthorized, "right": http.StatusServiceUnavailable} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders/42", http.NoBody)
		r.SetBasicAuth("ann", password)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: answered %d, want %d", password, w.Code, want)
		}
	}
}

func TestARefusalIsReadableBehindCompression(t *testing.T) {
	t.Parallel()
	e := echo.New()
	e.Use(middleware.Gzip())
	e.POST("/plain", leaseName, echomw.Lock(newLocker(t), "{query:x}"))
	srv := httptest.NewServer(e)
	defer srv.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/plain", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Client().Do(r) // asks for gzip
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var body strings.Builder
	if err := res.Write(&body); err != nil {
		t.Fatal(err)
	}
	if !res.Uncompressed || res.StatusCode != http.StatusBadRequest || !strings.Contains(body.String(), httpmw.TypeInvalidKey) {
		t.Errorf("compressed: %t, answered %s", res.Uncompressed, body.String())
	}
}
