package httpmw_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
)

func TestSourcesOfARoute(t *testing.T) {
	t.Parallel()
	locks := mwtest.MemoryLocker(t)
	for _, test := range []struct {
		key, pattern, path string
		status             int
		name               string
	}{
		{"file:{path|text}", "/files/{path...}", "/files/a/b", http.StatusOK, "file:a/b"},
		{"file:{path|text}", "/files/{path...}", "/files/", http.StatusBadRequest, ""},
		{"file:{pat|text}", "/files/{path...}", "/files/a", http.StatusInternalServerError, ""},
		{"order:{id|text}", "/orders/{id}", "/orders/%2534", http.StatusOK, "order:%2534"},
		{"{a|int}:{ab|int}", "/{ab}/{a}", "/1/2", http.StatusOK, "2:1"},
	} {
		mux := http.NewServeMux()
		mux.Handle(test.pattern, httpmw.Lock(locks, test.key)(leaseName))
		w := mwtest.Call(t, mux, http.MethodPost, test.path)
		if w.Code != test.status || w.Code == http.StatusOK && w.Body.String() != test.name {
			t.Errorf("%s on %s: %d %s, want %d %s", test.key, test.pattern, w.Code, w.Body, test.status, test.name)
		}
	}
}

func TestAroundTheMuxThereIsNoRoute(t *testing.T) {
	t.Parallel()
	locks := mwtest.MemoryLocker(t)
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}", leaseName)
	if w := mwtest.Call(t, httpmw.Lock(locks, "order:{id|int}")(mux), http.MethodPost, "/orders/42"); w.Code != http.StatusInternalServerError {
		t.Errorf("%d %s, want 500", w.Code, w.Body)
	}
}

// Chi sets path values and, in newer versions, the pattern.
func TestPathValuesOfAnotherRouterCount(t *testing.T) {
	t.Parallel()
	h := httpmw.Lock(mwtest.MemoryLocker(t), "order:{id|int}")(leaseName)
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
	text := httpmw.Lock(mwtest.MemoryLocker(t), "order:{id|text}")(leaseName)
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

func TestErrorHandlerAnswersInstead(t *testing.T) {
	t.Parallel()
	locks := mwtest.MemoryLocker(t)
	mw, err := httpmw.New(httpmw.Config{
		Locker: locks, Key: "order:{id|int}", Options: []core.Option{core.WithMaxHold(10 * time.Millisecond)},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, p *httpmw.Problem) {
			if r.Context().Err() != nil {
				t.Error("the error handler's context has ended")
			}
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, p.Type)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}", mw(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	})))
	if w := mwtest.Call(t, mux, http.MethodPost, "/orders/42"); w.Code != http.StatusTeapot || w.Body.String() != httpmw.TypeLost {
		t.Errorf("lost: %d %s", w.Code, w.Body)
	}
	x, err := locks.TryAcquire(t.Context(), "order:43")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release(t.Context()) //nolint:errcheck // a test's end
	if w := mwtest.Call(t, mux, http.MethodPost, "/orders/43"); w.Code != http.StatusTeapot || w.Body.String() != httpmw.TypeHeld {
		t.Errorf("held: %d %s", w.Code, w.Body)
	}
}

// What middleware outside has set before counts: it compresses whatever comes.
func TestALossIsNotAnsweredAsWhatTheHandlerHadInMind(t *testing.T) {
	t.Parallel()
	for _, outside := range []string{"", "gzip"} {
		inner := httpmw.Lock(mwtest.MemoryLocker(t), "order:{query:id|int}", core.WithMaxHold(10*time.Millisecond))(
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Encoding", "br")
				w.Header().Set("Etag", `"1"`)
				w.Header().Set("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT")
				<-r.Context().Done()
			}))
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if outside != "" {
				w.Header().Set("Content-Encoding", outside)
			}
			inner.ServeHTTP(w, r)
		})
		w := mwtest.Call(t, h, http.MethodPost, "/?id=42")
		if got := w.Header(); w.Code != 503 || got.Get("Content-Encoding") != outside || got.Get("Etag") != "" || got.Get("Last-Modified") != "" {
			t.Errorf("%d %v, want 503 with the Content-Encoding %q", w.Code, got, outside)
		}
	}
}

func TestWhatAWriterCannotDoIsNotPromised(t *testing.T) {
	t.Parallel()
	h := httpmw.Lock(mwtest.MemoryLocker(t), "job:nightly")(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, ok := w.(http.Hijacker); ok {
			t.Error("a Hijacker, on a recorder")
		}
		if _, ok := w.(http.Flusher); !ok {
			t.Error("no Flusher, on a recorder")
		}
	}))
	mwtest.Call(t, h, http.MethodPost, "/")
}

func TestConstructorsPanicOnWhatCannotWork(t *testing.T) {
	t.Parallel()
	locks := mwtest.MemoryLocker(t)
	mwtest.Panics(t, "httpmw", func() { httpmw.Lock(locks, "order:{id") })
	mwtest.Panics(t, "httpmw", func() { httpmw.Lock(locks, "order:{id|int}")(nil) })
	mwtest.Panics(t, "httpmw", func() {
		httpmw.Bind(locks, "order:{ID}", httpmw.JSON[payment], func(http.ResponseWriter, *http.Request, *payment) {})
	})
	if _, err := httpmw.NewBind(httpmw.Config{Locker: locks, Key: "order:{OrderID}"}, nil, func(http.ResponseWriter, *http.Request, *payment) {}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("no decoder: %v", err)
	}
}
