package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

// What docs/getting-started.md shows of the answer is what the service answers.
func TestTheSecondPaymentGetsTheAnswerOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/getting-started.md")
	locktest.OK(t, err)
	synctest.Test(t, func(t *testing.T) {
		shop := routes(locktest.Memory(t))
		post := func(path string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			shop.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody))
			return w
		}
		first := make(chan *httptest.ResponseRecorder)
		go func() { first <- post("/orders/42/pay") }()
		synctest.Wait()

		second := post("/orders/042/pay")
		shown := "HTTP/1.1 409 Conflict\nContent-Type: " + second.Header().Get("Content-Type") +
			"\nRetry-After: " + second.Header().Get("Retry-After") + "\n\n" + second.Body.String()
		if second.Code != http.StatusConflict || !strings.Contains(string(page), "\n"+shown) {
			t.Errorf("%d; the page does not show:\n%s", second.Code, shown)
		}
		if got := post("/orders/43/pay").Body.String(); got != "paid 43\n" {
			t.Errorf("another order: %q", got)
		}
		if got := (<-first).Body.String(); got != "paid 42\n" {
			t.Errorf("the first request: %q", got)
		}
	})
}
