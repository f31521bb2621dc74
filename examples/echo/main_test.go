package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

// Each pair of requests comes at the same time. The answers are what the comments of the routes say.
func TestTheRoutesAnswerAsTheirCommentsSay(t *testing.T) {
	t.Parallel()
	const pay, ship, cancel = "POST /orders/42/pay", "POST /orders/42/ship", "DELETE /orders/42"
	synctest.Test(t, func(t *testing.T) {
		shop := shop(locktest.Memory(t))
		send := func(request, body string) *httptest.ResponseRecorder {
			method, path, _ := strings.Cut(request, " ")
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			shop.ServeHTTP(w, r)
			return w
		}
		for _, step := range []struct {
			first, second, body string
			status              int // of the second; the first is done
			says                string
		}{
			{pay, pay, "", http.StatusConflict, "problems/held"},
			{pay, cancel, "", http.StatusConflict, "not now: Resource is in use"},
			{pay, cancel + "?force=yes", "", http.StatusOK, "/orders/:id"},
			{pay, "POST /orders/43/pay", "", http.StatusOK, "/pay"},
			{ship, ship, "", http.StatusConflict, "problems/held"},
			{pay, "PUT /stock", `{"count":3}`, http.StatusBadRequest, "problems/invalid-key"},
			{"PUT /stock", "PUT /stock", `{"sku":"A7"}`, http.StatusOK, "/stock"},
		} {
			first := make(chan *httptest.ResponseRecorder)
			go func() { first <- send(step.first, step.body) }()
			synctest.Wait()
			if w := send(step.second, step.body); w.Code != step.status || !strings.Contains(w.Body.String(), step.says) {
				t.Errorf("%s during %s: %d %s, want %d %s", step.second, step.first, w.Code, w.Body, step.status, step.says)
			}
			if w := <-first; w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", step.first, w.Code, w.Body)
			}
		}
		if w := send(ship, ""); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "problems/already-processed") {
			t.Errorf("a second shipment: %d %s", w.Code, w.Body)
		}
	})
}
