package httpmw_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// Chi sets path values and, in newer versions, the pattern.
func TestPathValuesOfAnotherRouterCount(t *testing.T) {
	t.Parallel()
	h := httpmw.Lock(locktest.Memory(t), "order:{id|int}")(http.HandlerFunc(mwtest.LeaseName))
	for _, test := range []struct {
		pattern, value string
		status         int
	}{
		{"", "42", http.StatusOK},
		{"/orders/{id:[0-9]+}", "42", http.StatusOK},
		{"/orders/{id:[0-9]*}", "", http.StatusBadRequest},
		{"", "", http.StatusInternalServerError},
	} {
		router := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Pattern = test.pattern
			r.SetPathValue("id", test.value)
			h.ServeHTTP(w, r)
		})
		if w := mwtest.Call(t, router, http.MethodPost, "/orders/42"); w.Code != test.status {
			t.Errorf("%+v: %d %s", test, w.Code, w.Body)
		}
	}
	text := httpmw.Lock(locktest.Memory(t), "order:{id|text}")(http.HandlerFunc(mwtest.LeaseName))
	for sent, status := range map[string]int{"%34%32": http.StatusBadRequest, "a%2Fb": http.StatusBadRequest, "100%": http.StatusOK, "A7": http.StatusOK} {
		asSent := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // as chi without the recipe
			r.URL.RawPath = "/orders/" + sent
			r.SetPathValue("id", sent)
			text.ServeHTTP(w, r)
		})
		if w := mwtest.Call(t, asSent, http.MethodPost, "/orders/x"); w.Code != status {
			t.Errorf("%s as it was sent: %d %s", sent, w.Code, w.Body)
		}
	}
}

// wrapped is a writer of middleware outside: what it cannot do itself, http.ResponseController finds behind it.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A writer outside that has only Unwrap hides no answer: after a flush nothing is added. One that has nothing says so.
func TestAWriterSaysWhatTheOneOutsideCannotDo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		outside func(http.ResponseWriter) http.ResponseWriter
		flush   error
		status  int
	}{
		"bare":    {func(w http.ResponseWriter) http.ResponseWriter { return struct{ http.ResponseWriter }{w} }, http.ErrNotSupported, http.StatusServiceUnavailable},
		"wrapped": {func(w http.ResponseWriter) http.ResponseWriter { return wrapped{wrapped{w}} }, nil, http.StatusOK},
	} {
		h := httpmw.Lock(locktest.Memory(t), "job:nightly", core.WithMaxHold(10*time.Millisecond))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := http.NewResponseController(w).Flush(); !errors.Is(err, test.flush) {
				t.Errorf("%s: flushed: %v", name, err)
			}
			if _, _, err := w.(http.Hijacker).Hijack(); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("%s: hijacked: %v", name, err)
			}
			<-r.Context().Done()
		}))
		w := httptest.NewRecorder()
		h.ServeHTTP(test.outside(w), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody))
		if w.Code != test.status || w.Flushed != (test.flush == nil) || w.Flushed && w.Body.Len() > 0 {
			t.Errorf("%s: answered %d %s", name, w.Code, w.Body)
		}
	}
}
