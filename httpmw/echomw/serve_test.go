package echomw_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
	"github.com/holdfast-go/holdfast/httpmw/internal/doortest"
)

func newLocker(t testing.TB) *core.Locker {
	t.Helper()
	return doortest.NewLocker(t, &doortest.Backend{Store: memlock.New()})
}

func call(t *testing.T, h http.Handler, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody))
	return w
}

// leaseName answers with the name of the lease.
func leaseName(c echo.Context) error {
	x, _ := core.FromContext(c.Request().Context())
	return c.String(http.StatusOK, x.Name())
}

var short = core.WithMaxHold(10 * time.Millisecond)

func TestAHandlersErrorIsItsOwn(t *testing.T) {
	t.Parallel()
	locks := newLocker(t)
	inner := &core.LostError{Name: "stock:7", Reason: core.ReasonExpired}
	for _, own := range []error{
		echo.NewHTTPError(http.StatusTeapot, "own"), &core.HeldError{Name: "stock:7"}, core.ErrDuplicate, inner, core.ErrClosed,
		context.Canceled,
	} {
		var seen error
		e := echo.New()
		e.HTTPErrorHandler = func(err error, c echo.Context) {
			seen = err
			_ = c.NoContent(http.StatusTeapot)
		}
		e.POST("/orders/:id", func(echo.Context) error { return own }, echomw.Lock(locks, "order:{id}"))
		if w := call(t, e, http.MethodPost, "/orders/42"); w.Code != http.StatusTeapot {
			t.Errorf("%v: answered %d %s", own, w.Code, w.Body)
		}
		if seen != own { //nolint:errorlint // the very same
			t.Errorf("Echo got %v, want %v as it is", seen, own)
		}
	}
}

// Echo writes the status of an error later, outside the door.
func TestAnErrorIsNotDone(t *testing.T) {
	t.Parallel()
	for _, own := range []error{errors.New("own"), echo.NewHTTPError(http.StatusTeapot, "own"), echo.NewHTTPError(http.StatusOK, "odd")} {
		calls := 0
		e := echo.New()
		e.POST("/orders/:id", func(c echo.Context) error {
			if calls++; calls == 1 {
				return own
			}
			return leaseName(c)
		}, echomw.Lock(newLocker(t), "order:{id}", core.WithDedup(time.Hour)))
		call(t, e, http.MethodPost, "/orders/42")
		for i, want := range []int{http.StatusOK, http.StatusConflict} {
			if w := call(t, e, http.MethodPost, "/orders/42"); w.Code != want {
				t.Errorf("%v, request %d after it: %d %s, want %d", own, i, w.Code, w.Body, want)
			}
		}
	}
}

func TestALossWinsOverTheHandlersErrorAndKeepsIt(t *testing.T) {
	t.Parallel()
	own := errors.New("query canceled")
	var seen error
	e := echo.New()
	e.HTTPErrorHandler = func(err error, _ echo.Context) { seen = err }
	e.POST("/orders/:id", func(c echo.Context) error {
		<-c.Request().Context().Done()
		return own
	}, echomw.Lock(newLocker(t), "order:{id}", short))
	w := call(t, e, http.MethodPost, "/orders/42")
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), httpmw.TypeLost) {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	if !errors.Is(seen, core.ErrLost) || !errors.Is(seen, own) {
		t.Errorf("Echo got %v, want the loss and the handler's error", seen)
	}
}

func TestALossAfterTheAnswerLeavesTheHandlersError(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	var seen error
	e := echo.New()
	e.HTTPErrorHandler = func(err error, _ echo.Context) { seen = err }
	e.POST("/orders/:id", func(c echo.Context) error {
		_ = c.String(http.StatusOK, "partial")
		<-c.Request().Context().Done()
		return own
	}, echomw.Lock(newLocker(t), "order:{id}", short))
	if w := call(t, e, http.MethodPost, "/orders/42"); w.Code != http.StatusOK || w.Body.String() != "partial" {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	if seen != own { //nolint:errorlint // the very same
		t.Errorf("Echo got %v", seen)
	}
}

// Through a server: the declared length is what keeps a second body away.
func TestACustomErrorHandlerSeesARefusalAndAddsNothing(t *testing.T) {
	t.Parallel()
	locks := newLocker(t)
	x, err := locks.TryAcquire(t.Context(), "order:42")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release(t.Context()) //nolint:errcheck // a test's end
	seen := make(chan error, 1)
	e := echo.New()
	e.Debug = true
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		seen <- err
		_ = c.JSON(http.StatusInternalServerError, err.Error()) // does not look at Committed
	}
	e.POST("/orders/:id", leaseName, echomw.Lock(locks, "order:{id}"))
	srv := httptest.NewServer(e)
	defer srv.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/orders/42", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var body strings.Builder
	if err := res.Write(&body); err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusConflict || !strings.HasSuffix(body.String(), `not started."}`) {
		t.Errorf("answered %s", body.String())
	}
	got := <-seen
	he, ok := errors.AsType[*echo.HTTPError](got)
	if p, is := errors.AsType[*httpmw.Problem](got); !ok || he.Code != http.StatusConflict || !is || !errors.Is(p, core.ErrHeld) {
		t.Errorf("Echo got %v", got)
	}
}

func TestErrorHandlerAnswersInstead(t *testing.T) {
	t.Parallel()
	locks := newLocker(t)
	x, err := locks.TryAcquire(t.Context(), "order:42")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release(t.Context()) //nolint:errcheck // a test's end
	mw, err := echomw.Config{
		Locker: locks, Key: "order:{id}",
		ErrorHandler: func(_ echo.Context, p *httpmw.Problem) error { return echo.NewHTTPError(p.Status, p.Title) },
	}.ToMiddleware()
	if err != nil {
		t.Fatal(err)
	}
	e := echo.New()
	e.POST("/orders/:id", leaseName, mw)
	w := call(t, e, http.MethodPost, "/orders/42")
	if w.Code != http.StatusConflict || strings.TrimSpace(w.Body.String()) != `{"message":"Resource is in use"}` {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

func TestAHeadRequestIsRefusedWithoutABody(t *testing.T) {
	t.Parallel()
	e := echo.New()
	e.HEAD("/plain", leaseName, echomw.Lock(newLocker(t), "{query:x}"))
	srv := httptest.NewServer(e)
	defer srv.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, srv.URL+"/plain", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusBadRequest || res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("answered %d %v", res.StatusCode, res.Header)
	}
}
