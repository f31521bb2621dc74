package doortest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// MemoryLocker returns a Locker on a backend of its own.
func MemoryLocker(t testing.TB) *core.Locker {
	t.Helper()
	return NewLocker(t, &Backend{Store: memlock.New()})
}

// Call has h answer a request without a server.
func Call(t testing.TB, h http.Handler, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody))
	return w
}
