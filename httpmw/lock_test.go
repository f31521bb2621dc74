package httpmw_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestAroundTheMuxThereIsNoRoute(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}", leaseName)
	if w := mwtest.Call(t, httpmw.Lock(locks, "order:{id|int}")(mux), http.MethodPost, "/orders/42"); w.Code != http.StatusInternalServerError {
		t.Errorf("%d %s, want 500", w.Code, w.Body)
	}
}

// Chi sets path values and, in newer versions, the pattern.
func TestPathValuesOfAnotherRouterCount(t *testing.T) {
	t.Parallel()
	h := httpmw.Lock(locktest.Memory(t), "order:{id|int}")(leaseName)
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
	text := httpmw.Lock(locktest.Memory(t), "order:{id|text}")(leaseName)
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

func TestAWriterSaysWhatTheOneOutsideCannotDo(t *testing.T) {
	t.Parallel()
	h := httpmw.Lock(locktest.Memory(t), "job:nightly", core.WithMaxHold(time.Millisecond))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("flushed: %v", err)
		}
		if _, _, err := w.(http.Hijacker).Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("hijacked: %v", err)
		}
		<-r.Context().Done()
	}))
	w := httptest.NewRecorder()
	h.ServeHTTP(struct{ http.ResponseWriter }{w}, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody))
	if w.Code != http.StatusServiceUnavailable { // nothing was written
		t.Errorf("answered %d", w.Code)
	}
}

// wrapped is a writer of middleware outside: what it cannot do itself, http.ResponseController finds behind it.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A writer outside that has only Unwrap hides no answer: after a flush nothing is added, and what was hijacked is not done.
func TestWhatHandlersReachThroughUnwrapIsSeen(t *testing.T) {
	t.Parallel()
	for name, outer := range map[string]func(http.ResponseWriter) http.ResponseWriter{
		"itself":  func(w http.ResponseWriter) http.ResponseWriter { return w },
		"wrapped": func(w http.ResponseWriter) http.ResponseWriter { return wrapped{w} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.Memory(t)
			mux := http.NewServeMux()
			mux.Handle("/flush", httpmw.Lock(locks, "job:flush", core.WithMaxHold(10*time.Millisecond))(http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					if err := http.NewResponseController(w).Flush(); err != nil {
						t.Error(err)
					}
					<-r.Context().Done()
				})))
			mux.Handle("/hijack", httpmw.Lock(locks, "job:hijack", core.WithWait(time.Minute), core.WithDedup(time.Hour), core.WithDedupScope("raw"))(
				http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					conn, _, err := http.NewResponseController(w).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
					_ = conn.Close()
				})))
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeHTTP(outer(w), r) }))
			defer srv.Close()
			for _, test := range []struct{ path, body string }{{"/flush", ""}, {"/hijack", "raw"}, {"/hijack", "raw"}} {
				if status, body := get(t, srv, test.path); status != http.StatusOK || body != test.body {
					t.Errorf("%s: %d %q, want 200 %q", test.path, status, body, test.body)
				}
			}
		})
	}
}

func get(t *testing.T, srv *httptest.Server, path string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(text)
}
