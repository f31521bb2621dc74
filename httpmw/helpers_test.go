package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw/internal/doortest"
)

func newLocker(t testing.TB) *core.Locker {
	t.Helper()
	return doortest.NewLocker(t, &doortest.Backend{Store: memlock.New()})
}

// call has h answer a request without a server.
func call(t *testing.T, h http.Handler, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody))
	return w
}

// leaseName answers with the name of the lease.
var leaseName http.HandlerFunc = func(w http.ResponseWriter, r *http.Request) {
	if x, ok := core.FromContext(r.Context()); ok {
		_, _ = w.Write([]byte(x.Name()))
	}
}
