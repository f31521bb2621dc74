package echomw_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/httpmw/idempotency"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
)

// Echo writes the answer to a handler's error when all middleware has returned. Until then it looks as if the
// handler had answered 200 with nothing.
func TestAnErrorOfAHandlerIsNotGivenAgainAsSuccess(t *testing.T) {
	t.Parallel()
	account := func(*http.Request) (string, error) { return "ann", nil }
	for _, own := range []error{errors.New("no database"), echo.NewHTTPError(http.StatusInternalServerError), echo.NewHTTPError(http.StatusPaymentRequired)} {
		e := echo.New()
		calls := 0
		e.POST("/payments", func(c echo.Context) error {
			if calls++; calls == 1 {
				return own
			}
			return c.String(http.StatusCreated, "paid")
		}, echo.WrapMiddleware(idempotency.Middleware(mwtest.MemoryLocker(t), new(idempotency.MemoryStore), account)))
		for i, want := range []struct {
			failed   bool
			replayed string
		}{{true, ""}, {false, ""}, {false, "true"}} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", http.NoBody)
			r.Header.Set("Idempotency-Key", "k1")
			w := httptest.NewRecorder()
			e.ServeHTTP(w, r)
			if w.Code >= http.StatusBadRequest != want.failed || w.Header().Get("Idempotent-Replayed") != want.replayed {
				t.Errorf("%v, request %d: %d %v %s", own, i, w.Code, w.Header(), w.Body)
			}
		}
		if calls != 2 {
			t.Errorf("%v: it ran %d times", own, calls)
		}
	}
}
