// Package mwtest is the table of cases that the middleware of all HTTP frameworks has to pass, each through its own
// framework, over loopback.
package mwtest

import (
	"bytes"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// Setup is one lock with what is behind it and around it.
type Setup struct {
	Locker  *core.Locker
	Key     string
	KeyFunc func(*http.Request) (string, error)
	Options []core.Option
	Skipper func(*http.Request) bool
	MaxBody int64
	Logger  *slog.Logger
	Handler http.HandlerFunc
	Fails   error // what the handler returns; where it returns nothing, it answers with httpmw.ProblemFor

	ErrorHandler func(http.ResponseWriter, *http.Request, *httpmw.Problem)

	// Bound is the handler behind Bind.
	Bound func(w http.ResponseWriter, r *http.Request, req *Pay)

	// Route is the only one, as the framework writes it.
	Route string
	// Outer stands around the framework, which is next.
	Outer func(w http.ResponseWriter, r *http.Request, next http.Handler)
	// HTTP2 serves HTTP/2, over TLS.
	HTTP2 bool
}

// Config is s as the Config of a framework, whose C has a request. Its ErrorHandler is missing.
func Config[C, E any](s Setup, request func(C) *http.Request) httpmw.Settings[C, E] {
	c := httpmw.Settings[C, E]{Locker: s.Locker, Key: s.Key, Options: s.Options, MaxBody: s.MaxBody, Logger: s.Logger}
	if s.KeyFunc != nil {
		c.KeyFunc = func(c C) (string, error) { return s.KeyFunc(request(c)) }
	}
	if s.Skipper != nil {
		c.Skipper = func(c C) bool { return s.Skipper(request(c)) }
	}
	return c
}

// Paths are the routes of s, for GET, POST and PUT. param is how the framework writes {id}.
func (s Setup) Paths(param string) []string {
	if s.Route != "" {
		return []string{s.Route}
	}
	return []string{"/orders/" + param, "/refunds/" + param, "/plain"}
}

// Mount serves a setup.
type Mount func(s Setup) (http.Handler, error)

// Framework is a framework with its middleware.
type Framework struct {
	// Lock mounts s.Handler behind the lock, on s.Paths.
	Lock Mount
	// Bind mounts s.Bound behind Bind: for GET, POST, PUT and DELETE of /orders/{id} and /pay.
	Bind Mount
	// Routes are of the framework's own.
	Routes []Route
	// Streams says that it stands on net/http, with its streams, connections and contexts.
	Streams bool
}

// Route is what a key makes of a path.
type Route struct {
	Key, Route, Path string
	Status           int
	Name             string // of the lock, if the status is 200
}

// Run runs the table.
func Run(t *testing.T, f Framework) {
	t.Helper()
	tests := map[string]func(*testing.T, Mount){
		"Answers": testAnswers, "Names": testNames, "Dedup": testDedup, "Construction": testConstruction,
		"Loss":   func(t *testing.T, mount Mount) { t.Helper(); testLoss(t, mount, f.Streams) },
		"Routes": func(t *testing.T, mount Mount) { t.Helper(); testRoutes(t, mount, f.Routes) },
		"Bind":   func(t *testing.T, _ Mount) { t.Helper(); testBind(t, f.Bind) },
	}
	if f.Streams {
		tests["Lifetime"], tests["Body"], tests["Stream"] = testLifetime, testBody, testStream
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, f.Lock)
		})
	}
}

// run runs parts of a table, each with a framework.
func run(t *testing.T, mount Mount, parts map[string]func(*testing.T, Mount)) {
	t.Helper()
	for name, test := range parts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, mount)
		})
	}
}

// Call has h answer a request without a server. Headers are "Name: value".
func Call(t testing.TB, h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func testRoutes(t *testing.T, mount Mount, routes []Route) {
	for _, test := range routes {
		h, err := mount(Setup{Locker: locktest.Memory(t), Key: test.Key, Route: test.Route, Handler: LeaseName})
		locktest.OK(t, err)
		if w := Call(t, h, http.MethodPost, test.Path); w.Code != test.Status || w.Code == http.StatusOK && w.Body.String() != test.Name {
			t.Errorf("%s of %s: %d %s, want %d %s", test.Key, test.Path, w.Code, w.Body, test.Status, test.Name)
		}
	}
}

// bench is a server behind a lock, on a backend of its own.
type bench struct {
	t     *testing.T
	store *locktest.Backend
	locks *core.Locker
	other *core.Locker // of another process, as it were
	ran   atomic.Int32 // how often the handler was called
	url   string
	srv   *httptest.Server

	complaints bytes.Buffer // of net/http, about what handlers did
}

// start serves s. Without a Locker, a key or a handler it gets locks on memory,
// "order:{id|int}" and one that answers with the name of its lease.
func start(t *testing.T, mount Mount, s Setup) *bench {
	t.Helper()
	b := &bench{t: t, store: locktest.NewBackend()}
	b.locks, b.other = locktest.Locker(t, b.store), locktest.Locker(t, b.store)
	if s.Locker == nil {
		s.Locker = b.locks
	}
	if s.Key == "" && s.KeyFunc == nil {
		s.Key = "order:{id|int}"
	}
	handler := s.Handler
	if handler == nil {
		handler = LeaseName
	}
	s.Handler = func(w http.ResponseWriter, r *http.Request) {
		b.ran.Add(1)
		handler(w, r)
	}
	h, err := mount(s)
	locktest.OK(t, err)
	if inner := h; s.Outer != nil {
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.Outer(w, r, inner) })
	}
	b.srv = httptest.NewUnstartedServer(h)
	b.srv.Config.ErrorLog = log.New(&b.complaints, "", 0)
	b.srv.EnableHTTP2 = s.HTTP2
	if s.HTTP2 {
		b.srv.StartTLS()
	} else {
		b.srv.Start()
	}
	t.Cleanup(func() {
		b.srv.Close()
		if s := b.complaints.String(); s != "" {
			t.Errorf("the server complains: %s", s)
		}
	})
	b.url = b.srv.URL
	return b
}

// LeaseName answers with the name of the lease, "none" if there is none.
func LeaseName(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte(locktest.NameOf(r.Context())))
}

// free says whether nobody holds name.
func (b *bench) free(name string) bool {
	b.t.Helper()
	return locktest.IsFree(b.t, b.other, name)
}

// handled fails the test unless the handler ran n times.
func (b *bench) handled(n int32) {
	b.t.Helper()
	if got := b.ran.Load(); got != n {
		b.t.Errorf("the handler ran %d times, want %d", got, n)
	}
}
