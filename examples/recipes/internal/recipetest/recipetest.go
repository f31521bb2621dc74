// Package recipetest has what the tests of all recipes share: what has to be true in every
// router.
package recipetest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
)

// Mount returns a router with one route, for POST, behind a lock. Its handler answers with the
// name of the lease.
type Mount func(route string, lock func(http.Handler) http.Handler) http.Handler

// LeaseName answers with the name of the lease.
func LeaseName(w http.ResponseWriter, r *http.Request) {
	x, _ := core.FromContext(r.Context())
	_, _ = w.Write([]byte(x.Name()))
}

// Key checks what becomes of a key of a route: what a request for a path is answered.
func Key(t *testing.T, mount Mount, key, route, path string, status int, says string) {
	t.Helper()
	w := Call(t, mount(route, httpmw.Lock(NewLocker(t), key)), path)
	if w.Code != status || !strings.Contains(w.Body.String(), says) {
		t.Errorf("%s of %s: %d %s, want %d %s", key, path, w.Code, w.Body, status, says)
	}
}

// NewLocker returns a Locker that is closed with the test.
func NewLocker(t *testing.T) *core.Locker {
	t.Helper()
	l, err := core.New(memlock.New())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return l
}

// Call has h answer a POST.
func Call(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, http.NoBody))
	return w
}

// Router checks what has to be true of a route with a parameter {id}, however the router writes it.
func Router(t *testing.T, mount Mount, route string, slashes bool) {
	t.Helper()
	Key(t, mount, "order:{id|int}", route, "/orders/42", http.StatusOK, "order:42")
	Key(t, mount, "order:{id|int}", route, "/orders/%34%32", http.StatusOK, "order:42")
	Key(t, mount, "order:{x|int}", route, "/orders/42", http.StatusInternalServerError, httpmw.TypeRoute)
	Key(t, mount, "order:{query:x|int}", route, "/orders/42", http.StatusBadRequest, httpmw.TypeInvalidKey)
	hostiles(t, mount, route, slashes)
}

// hostiles sends hostile values as the {id} of a route: each gets a lock of its own name. A value
// that is a part of the path's structure, such as a slash, may have no route, where the router looks at the
// unescaped path.
func hostiles(t *testing.T, mount Mount, route string, slashes bool) {
	t.Helper()
	h := mount(route, httpmw.Lock(NewLocker(t), strings.Replace(hostile.Template, "{v}", "{id|text}", 1)))
	var names hostile.Names
	for what, value := range hostile.Values() {
		w := Call(t, h, "/orders/"+url.PathEscape(value))
		structure := strings.Contains(value, "/") || value == "." || value == ".."
		if !slashes && structure && (w.Code == http.StatusNotFound || w.Code == http.StatusMovedPermanently) {
			continue
		}
		if w.Code != http.StatusOK {
			t.Errorf("%s: answered %d %s", what, w.Code, w.Body)
			continue
		}
		names.Check(t, value, w.Body.String())
	}
}
