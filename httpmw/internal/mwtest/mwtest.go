// Package mwtest is the table of cases that the middleware of all HTTP frameworks has to pass, each through its own
// framework, over loopback.
package mwtest

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
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

	// Bound is the handler behind Bind.
	Bound func(w http.ResponseWriter, r *http.Request, req *Pay)

	// Outer stands around the framework.
	Outer func(http.Handler) http.Handler
	// HTTP2 serves HTTP/2, over TLS.
	HTTP2 bool
}

// Config is s as the Config of a framework, whose C has a request.
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

// Mount serves a setup.
type Mount func(s Setup) (http.Handler, error)

// Framework is a framework with its middleware.
type Framework struct {
	// Lock mounts s.Handler behind the lock: for GET, POST and PUT of /orders/{id}, /refunds/{id} and /plain. Names of
	// the routes are the framework's own.
	Lock Mount
	// Bind mounts s.Bound behind Bind: for GET, POST, PUT and DELETE of /orders/{id} and /pay.
	Bind Mount
	// Streams says that it stands on net/http, with its streams, connections and contexts.
	Streams bool
}

// Run runs the table.
func Run(t *testing.T, f Framework) {
	t.Helper()
	tests := map[string]func(*testing.T, Mount){
		"Answers": testAnswers, "Names": testNames, "BadRequests": testBadRequests, "Hostile": testHostile, "Dedup": testDedup, "Construction": testConstruction,
	}
	if f.Streams {
		tests["Loss"], tests["Lifetime"], tests["Body"], tests["Stream"] = testLoss, testLifetime, testBody, testStream
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, f.Lock)
		})
	}
	t.Run("Bind", func(t *testing.T) {
		t.Parallel()
		testBind(t, f.Bind)
	})
}

// bench is a server behind a lock, on a backend of its own.
type bench struct {
	t     *testing.T
	store *Backend
	locks *core.Locker
	other *core.Locker // of another process, as it were
	ran   atomic.Int32 // how often the handler was called
	url   string
	srv   *httptest.Server

	complaints logBuffer // of net/http, about what handlers did
}

// start serves s. Without a Locker, a key or a handler it gets locks on memory,
// "order:{id|int}" and one that answers with the name of its lease.
func start(t *testing.T, mount Mount, s Setup) *bench {
	t.Helper()
	b := &bench{t: t, store: &Backend{Store: memlock.New(), Waits: make(chan struct{}, 1)}}
	b.locks, b.other = NewLocker(t, b.store), NewLocker(t, b.store)
	if s.Locker == nil {
		s.Locker = b.locks
	}
	if s.Bound != nil {
		bound := s.Bound
		s.Bound = func(w http.ResponseWriter, r *http.Request, req *Pay) {
			b.ran.Add(1)
			bound(w, r, req)
		}
	}
	if s.Key == "" && s.KeyFunc == nil {
		s.Key = "order:{id|int}"
	}
	handler := s.Handler
	if handler == nil {
		handler = leaseName
	}
	s.Handler = func(w http.ResponseWriter, r *http.Request) {
		b.ran.Add(1)
		handler(w, r)
	}
	h, err := mount(s)
	if err != nil {
		t.Fatal(err)
	}
	if s.Outer != nil {
		h = s.Outer(h)
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

// logBuffer is a buffer that several goroutines may write to.
type logBuffer struct {
	mu  sync.Mutex // protects buf
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// leaseName answers with the name of the lease, "none" if there is none.
func leaseName(w http.ResponseWriter, r *http.Request) {
	name := "none"
	if x, ok := core.FromContext(r.Context()); ok {
		name = x.Name()
	}
	_, _ = w.Write([]byte(name))
}

// NewLocker returns a Locker that is closed with the test.
func NewLocker(t testing.TB, d driver.Driver, opts ...core.NewOption) *core.Locker {
	t.Helper()
	l, err := core.New(d, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return l
}

// hold takes name until the test ends or free is called.
func (b *bench) hold(name string, opts ...core.Option) (free func()) {
	b.t.Helper()
	x, err := b.other.TryAcquire(b.t.Context(), name, opts...)
	if err != nil {
		b.t.Fatal(err)
	}
	free = func() { _ = x.Release(context.WithoutCancel(b.t.Context())) }
	b.t.Cleanup(free)
	return free
}

// free says whether nobody holds name.
func (b *bench) free(name string) bool {
	b.t.Helper()
	x, err := b.other.TryAcquire(context.WithoutCancel(b.t.Context()), name)
	if err != nil {
		return false
	}
	_ = x.Release(context.WithoutCancel(b.t.Context()))
	return true
}

// handled fails the test unless the handler ran n times.
func (b *bench) handled(n int32) {
	b.t.Helper()
	if got := b.ran.Load(); got != n {
		b.t.Errorf("the handler ran %d times, want %d", got, n)
	}
}
