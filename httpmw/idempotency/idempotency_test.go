package idempotency_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/idempotency"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

// brittle is a store that fails as it is told.
type brittle struct {
	idempotency.MemoryStore
	load, save func(context.Context) error // nil: it works
}

func (b *brittle) Load(ctx context.Context, key string) ([]byte, error) {
	if b.load != nil {
		return nil, b.load(ctx)
	}
	return b.MemoryStore.Load(ctx, key)
}

func (b *brittle) Save(ctx context.Context, key string, answer []byte, window time.Duration) error {
	if b.save != nil {
		return b.save(ctx)
	}
	return b.MemoryStore.Save(ctx, key, answer, window)
}

// payments is a service behind the middleware, without a server.
type payments struct {
	t     *testing.T
	store *brittle
	locks *memlock.Store
	h     http.Handler
	ran   atomic.Int32
}

func newPayments(t *testing.T, handler http.HandlerFunc, change ...func(*idempotency.Config)) *payments {
	t.Helper()
	p := &payments{t: t, store: new(brittle), locks: memlock.New()}
	c := idempotency.Config{
		Locker: locktest.Locker(t, p.locks), Store: p.store,
		Scope:  func(r *http.Request) (string, error) { return cmp.Or(r.Header.Get("X-User"), "ann"), nil },
		Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&c)
	}
	mw, err := idempotency.New(c)
	locktest.OK(t, err)
	p.h = mw(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ran.Add(1)
		handler(w, r)
	}))
	return p
}

func (p *payments) ask(key, body string, headers ...string) *httptest.ResponseRecorder {
	return p.send(p.t.Context(), http.MethodPost, "/payments", key, body, headers...)
}

func (p *payments) send(ctx context.Context, method, target, key, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	r.RequestURI = r.URL.RequestURI() // as a server gets it
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Add(pair[0], pair[1])
	}
	w := httptest.NewRecorder()
	w.Header().Set("X-Request-Id", "of this request") // by middleware outside
	p.h.ServeHTTP(w, r)
	return w
}

// outside has f look at each request before.
func (p *payments) outside(f http.HandlerFunc) {
	inner := p.h
	p.h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f(w, r); inner.ServeHTTP(w, r) })
}

func (p *payments) wants(w *httptest.ResponseRecorder, status int, body string, replayed bool) {
	p.t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), body) || (w.Header().Get("Idempotent-Replayed") == "true") != replayed {
		p.t.Errorf("answered %d %v %s, want %d %s, replayed %v", w.Code, w.Header(), w.Body, status, body, replayed)
	}
}

func (p *payments) ranTimes(n int32) {
	p.t.Helper()
	if got := p.ran.Load(); got != n {
		p.t.Errorf("the handler ran %d times, want %d", got, n)
	}
}

func echoed(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Location", "/payments/1")
	w.Header().Add("X-Many", "a")
	w.Header().Add("X-Many", "b")
	w.WriteHeader(http.StatusCreated)
	w.Header().Set("Location", "/too/late") // so it is without the middleware
	_, _ = w.Write(append([]byte("paid "), body...))
}

func TestARepeatedRequestGetsTheSameAnswerAndAnotherOne422(t *testing.T) {
	t.Parallel()
	p := newPayments(t, echoed)
	first := p.ask("k1", "10")
	p.wants(first, 201, "paid 10", false)
	for _, key := range []string{"k1", `"k1"`, " k1 "} {
		again := p.ask(key, "10")
		p.wants(again, 201, "paid 10", true)
		if again.Body.String() != first.Body.String() || again.Header().Get("Location") != "/payments/1" || first.Header().Get("Location") != "/payments/1" ||
			len(again.Header().Values("X-Many")) != 2 || again.Header().Get("X-Request-Id") != "of this request" {
			t.Errorf("%v %s", again.Header(), again.Body)
		}
	}
	p.wants(p.ask("k1", "11"), 422, httpmw.TypeKeyReused, false)
	p.wants(p.ask("k1", "10", "Content-Type", "text/plain"), 422, httpmw.TypeKeyReused, false)
	p.ranTimes(1)
	p.wants(p.ask("k2", "10"), 201, "paid 10", false)
	p.wants(p.ask("k1", "10", "X-User", "bob"), 201, "paid 10", false) // somebody else's key
	p.wants(p.ask("", "10"), 201, "paid 10", false)                    // without a key it passes
	p.ranTimes(4)
}

// A key changes nothing for the handler: it sees, replaces and removes what stands outside has set. What that adds for each request
// stays, and a header has the same bytes again.
func TestHeadersOfMiddlewareOutsideAreNotHiddenByAKey(t *testing.T) {
	t.Parallel()
	const latin = "attachment; filename=\"Gr\xf6\xdfe.pdf\""
	var seen string
	p := newPayments(t, func(w http.ResponseWriter, _ *http.Request) {
		seen = w.Header().Get("X-Request-Id")
		w.Header().Del("X-Powered-By")
		w.Header().Set("Cache-Control", "private")
		w.Header().Set("Content-Disposition", latin)
		for name, value := range map[string]string{"Link": "</b>", "Set-Cookie": "cart=7", "Vary": "Accept"} {
			w.Header().Add(name, value)
		}
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
	})
	p.outside(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{"X-Powered-By": "us", "Cache-Control": "no-store", "Link": "</a>", "Set-Cookie": "session=new", "Vary": "Origin"} {
			w.Header().Set(name, value)
		}
	})
	for _, key := range []string{"", "k1", "k1"} {
		h := p.ask(key, "10").Header()
		delete(h, "Idempotent-Replayed")
		want := http.Header{
			"X-Request-Id": {"of this request"}, "Cache-Control": {"private"}, "Content-Disposition": {latin},
			"Link": {"</a>", "</b>"}, "Set-Cookie": {"session=new", "cart=7"}, "Vary": {"Origin", "Accept"},
		}
		if !maps.EqualFunc(h, want, slices.Equal) || seen != "of this request" {
			t.Errorf("%q: %v, the handler saw %q", key, h, seen)
		}
	}
	p.ranTimes(2)
}

// The scope may read the body, and parse a form in it: the handler gets it all the same.
func TestTheScopeMayReadTheBody(t *testing.T) {
	t.Parallel()
	for typ, read := range map[string]func(*http.Request){
		"application/x-www-form-urlencoded": func(r *http.Request) { _ = r.PostFormValue("amount") },
		"text/plain":                        func(r *http.Request) { _, _ = io.ReadAll(r.Body); _ = r.Body.Close() },
	} {
		p := newPayments(t, echoed, func(c *idempotency.Config) {
			c.Scope = func(r *http.Request) (string, error) { read(r); return "ann", nil }
		})
		p.wants(p.ask("k1", "amount=10", "Content-Type", typ), 201, "paid amount=10", false)
		p.wants(p.ask("k1", "amount=99", "Content-Type", typ), 422, httpmw.TypeKeyReused, false)
	}
}

// What such a request asks for cannot be told from what another one asks for.
func TestARequestWhoseBodyWasReadOutsideIsRefused(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	p := newPayments(t, echoed, func(c *idempotency.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	p.outside(func(_ http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Read") {
		case "as a form": // as middleware does that looks for a token against forgery
			_ = r.PostFormValue("token")
		case "in chunks":
			r.ContentLength = -1
			_, _ = io.ReadAll(r.Body)
		case "whole":
			_, _ = io.ReadAll(r.Body)
		default:
			r.ContentLength = -1 // as clients of HTTP/2 send a request without a body, too
		}
	})
	const form = "application/x-www-form-urlencoded"
	for _, read := range []string{"as a form", "in chunks", "whole"} {
		p.wants(p.ask("k1", "amount=10", "Read", read, "Content-Type", form), 500, httpmw.TypeRoute, false)
	}
	p.ranTimes(0)
	if strings.Count(log.String(), "level=ERROR") != 1 || !strings.Contains(log.String(), "put it back") {
		t.Errorf("logged %s", log.String())
	}
	p.wants(p.ask("k1", "amount=10", "Content-Type", form), 201, "paid amount=10", false)
	p.wants(p.ask("k2", ""), 201, "paid ", false) // it has none
}

// What is an answer is kept, and given again. All else runs again.
func TestWhatFailedRunsAgain(t *testing.T) {
	t.Parallel()
	answer := func(code int, header http.Header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			maps.Copy(w.Header(), header)
			if code > 0 {
				w.WriteHeader(code)
			}
			if body != "" {
				_, _ = io.WriteString(w, body)
			}
		}
	}
	nothing := func(http.ResponseWriter, *http.Request) {}
	etag, ofNine := http.Header{"Etag": {"1"}}, http.Header{"Content-Length": {"9"}}
	for name, test := range map[string]struct {
		first        http.HandlerFunc
		kept, logged bool
		leaves       bool // the client
		method       string
	}{
		"500":              {first: answer(http.StatusInternalServerError, nil, "")},
		"held":             {first: func(w http.ResponseWriter, r *http.Request) { httpmw.ProblemFor(core.ErrHeld).ServeHTTP(w, r) }},
		"429":              {first: answer(http.StatusTooManyRequests, nil, "")},
		"sent elsewhere":   {first: answer(http.StatusTemporaryRedirect, http.Header{"Location": {"/payments/"}}, "")}, // with the key
		"499":              {first: answer(499, nil, "")},
		"panics":           {first: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"4xx is an answer": {first: answer(http.StatusPaymentRequired, nil, ""), kept: true},
		// What a framework's adapter leaves of an error that it writes later, and a handler that has given up.
		"nothing":       {first: nothing, logged: true},
		"only a header": {first: func(w http.ResponseWriter, _ *http.Request) { maps.Copy(w.Header(), etag) }, logged: true},
		// A whole gin writes a 200 for a handler that has written nothing.
		"given up":             {first: answer(http.StatusOK, nil, ""), leaves: true, logged: true},
		"an empty 200":         {first: answer(http.StatusOK, nil, ""), kept: true},
		"a body to nobody":     {first: answer(0, nil, "paid"), leaves: true, kept: true},
		"a header to nobody":   {first: answer(http.StatusOK, etag, ""), leaves: true, kept: true},
		"a flush to nobody":    {first: func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() }, leaves: true, kept: true},
		"no content to nobody": {first: answer(http.StatusNoContent, nil, ""), leaves: true, kept: true},
		// It is what a handler leaves that copies from an upstream whose connection breaks.
		"cut off":        {first: answer(201, ofNine, "torn"), logged: true},
		"too long":       {first: answer(201, ofNine, "more than all of it"), logged: true},
		"whole":          {first: answer(201, ofNine, "all of it"), kept: true},
		"to HEAD":        {first: answer(200, ofNine, ""), method: http.MethodHead, kept: true},
		"without a body": {first: answer(304, ofNine, ""), kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var p *payments
			p = newPayments(t, func(w http.ResponseWriter, r *http.Request) {
				if p.ran.Load() > 1 {
					echoed(w, r)
					return
				}
				if test.leaves {
					leave()
				}
				test.first(w, r)
			}, func(c *idempotency.Config) {
				c.Logger, c.Applies = slog.New(slog.NewTextHandler(&log, nil)), func(*http.Request) bool { return true }
			})
			method := cmp.Or(test.method, http.MethodPost)
			func() {
				defer func() { _ = recover() }()
				p.send(ctx, method, "/payments", "k1", "10")
			}()
			if (log.Len() > 0) != test.logged {
				t.Errorf("logged %q", log.String())
			}
			again := p.send(t.Context(), method, "/payments", "k1", "10")
			if p.ranTimes(map[bool]int32{true: 1, false: 2}[test.kept]); test.kept {
				return
			}
			p.wants(again, 201, "paid 10", false)
			p.wants(p.send(t.Context(), method, "/payments", "k1", "10"), 201, "paid 10", true)
		})
	}
}

// Echo writes the answer to a handler's error when all middleware has returned, and to the writer inside.
func TestAnAnswerThatIsWrittenLaterReachesTheClientAndIsNotKept(t *testing.T) {
	t.Parallel()
	var inside http.ResponseWriter
	p := newPayments(t, func(w http.ResponseWriter, r *http.Request) {
		if inside != nil {
			echoed(w, r)
		}
		inside = w
	})
	inner := p.h
	p.h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r)
		if p.ran.Load() > 1 {
			return
		}
		http.Error(inside, "no database", http.StatusBadGateway)
	})
	p.wants(p.ask("k1", "10"), 502, "no database", false)
	p.wants(p.ask("k1", "10"), 201, "paid 10", false)
}

func TestALostLockKeepsNothing(t *testing.T) {
	t.Parallel()
	var p *payments
	var calls atomic.Int32
	p = newPayments(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			p.locks.Lose(locktest.NameOf(r.Context()))
			<-r.Context().Done()
		}
		echoed(w, r)
	}, func(c *idempotency.Config) { c.Options = []core.Option{core.WithTTL(200 * time.Millisecond)} })
	p.wants(p.ask("k1", "10"), 503, httpmw.TypeLost, false)
	p.wants(p.ask("k1", "10"), 201, "paid 10", false)
}

func TestWithoutLockServiceOrStoreNothingRuns(t *testing.T) {
	t.Parallel()
	locks := memlock.New()
	p := newPayments(t, echoed, func(c *idempotency.Config) { // other work of its Locker goes on
		c.Locker = locktest.Locker(t, fallback.New(locks), core.OnUnavailable(core.LocalOnly))
	})
	broken := func(context.Context) error { return errors.New("secret: no store") }
	p.store.load = broken
	w := p.ask("k1", "10")
	p.wants(w, 503, httpmw.TypeUnavailable, false)
	if strings.Contains(w.Body.String(), "secret") {
		t.Error("the client is told of the store")
	}
	p.store.load = nil
	locks.SetDown(true)
	p.wants(p.ask("k1", "10"), 503, httpmw.TypeUnavailable, false)
	p.ranTimes(0)
	locks.SetDown(false)
	p.store.save = broken
	p.wants(p.ask("k1", "10"), 201, "paid 10", false) // it is done, whether it can be kept or not
	p.store.save = nil
	p.wants(p.ask("k1", "10"), 201, "paid 10", false)
	p.ranTimes(2)
}

func TestAnswersThatAreTooLargeOrFlushedAreDoneAll(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"large": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", 60))
			_, _ = io.WriteString(w, strings.Repeat("y", 60))
		},
		"flushed": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", 60))
			locktest.OK(t, http.NewResponseController(w).Flush())
			_, _ = io.WriteString(w, strings.Repeat("y", 60))
		},
		"with trailers": func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("Trailer", "X-Sum")
			_, _ = io.WriteString(w, strings.Repeat("x", 60)+strings.Repeat("y", 60))
			h.Set("X-Sum", "120")
		},
		"with trailers of a sudden": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("xy", 40))
			w.Header().Set(http.TrailerPrefix+"X-Sum", "120")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPayments(t, handler, func(c *idempotency.Config) { c.MaxAnswer = 100 })
			w := p.ask("k1", "10")
			p.wants(w, 200, "xy", false)
			if res := w.Result(); w.Body.Len() != 120 && w.Body.Len() != 80 || (res.Trailer.Get("X-Sum") != "") != strings.HasPrefix(name, "with trailers") {
				t.Errorf("%d bytes, trailers %v", w.Body.Len(), res.Trailer)
			}
			p.wants(p.ask("k1", "10"), 409, httpmw.TypeDuplicate, false)
			p.wants(p.ask("k1", "11"), 422, httpmw.TypeKeyReused, false)
			p.ranTimes(1)
		})
	}
}

func TestAnAnswerIsKeptForItsWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPayments(t, echoed)
		p.ask("k1", "10")
		time.Sleep(24*time.Hour - time.Second)
		p.wants(p.ask("k1", "10"), 201, "paid", true)
		time.Sleep(2 * time.Second)
		p.wants(p.ask("k1", "10"), 201, "paid", false)
		p.ranTimes(2)
	})
}

func TestBadAndNobodysKeysAreRefusedAndNothingOfABodyIsLost(t *testing.T) {
	t.Parallel()
	p := newPayments(t, echoed, func(c *idempotency.Config) {
		c.Required, c.MaxBody = true, 100
		c.Scope = func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }
	})
	for name, key := range map[string]string{
		"none": "", "empty": `""`, "not closed": `"k`, "long": strings.Repeat("k", 256), "not ASCII": "ké", "a control character": "k\x01",
	} {
		if w := p.ask(key, "10", "X-User", "ann"); w.Code != 400 || !strings.Contains(w.Body.String(), httpmw.TypeIdempotencyKey) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	p.wants(p.ask("a", "", "Idempotency-Key", "b"), 400, httpmw.TypeIdempotencyKey, false)
	p.wants(p.ask("k1", "10"), 400, httpmw.TypeNobodysKey, false) // strangers would share it
	p.wants(p.ask("k1", strings.Repeat("x", 101), "X-User", "ann"), 413, httpmw.TypeTooLarge, false)
	p.ranTimes(0)
	p.wants(p.ask("k1", strings.Repeat("x", 100), "X-User", "ann"), 201, "paid "+strings.Repeat("x", 100), false)
	p.wants(p.send(t.Context(), http.MethodGet, "/payments", "", ""), 201, "paid", false) // idempotent by itself: no key is needed
}

// A repeat of a request that still runs is refused. Two first requests under a shared lock would both run.
func TestTheLockIsExclusiveWhateverTheOptionsSay(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]core.Option{nil, {core.WithShared()}, {core.WithLimit(2)}} {
		var p *payments
		p = newPayments(t, func(w http.ResponseWriter, r *http.Request) {
			again := p.ask("k1", "10")
			if p.wants(again, 409, httpmw.TypeHeld, false); again.Header().Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			echoed(w, r)
		}, func(c *idempotency.Config) { c.Options = opts })
		p.wants(p.ask("k1", "10"), 201, "paid 10", false)
		p.wants(p.ask("k1", "10"), 201, "paid 10", true)
		p.ranTimes(1)
	}
}

// Who has a lock waits for several names only if they are greater, so that nobody waits in a circle.
func TestALockOfSeveralNamesInsideWaitsForThem(t *testing.T) {
	t.Parallel()
	store := locktest.NewBackend()
	locks := locktest.Locker(t, store)
	free := locktest.Hold(t, locktest.Locker(t, store), "account:1")
	inner := httpmw.Lock(locks, "account:{query:from|int} account:{query:to|int}", core.WithWait(time.Minute))(http.HandlerFunc(echoed))
	p := newPayments(t, inner.ServeHTTP, func(c *idempotency.Config) { c.Locker = locks })
	go func() { <-store.Refused; free() }()
	p.wants(p.send(t.Context(), http.MethodPost, "/payments?from=1&to=2", "k1", "10"), 201, "paid 10", false)
}

func TestIdempotencyThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	scope := func(*http.Request) (string, error) { return "", nil }
	store := new(idempotency.MemoryStore)
	for name, c := range map[string]idempotency.Config{
		"no Locker": {Store: store, Scope: scope},
		"no store":  {Locker: locks, Scope: scope},
		"no scope":  {Locker: locks, Store: store},
		"negative":  {Locker: locks, Store: store, Scope: scope, Window: -1},
		"dedup":     {Locker: locks, Store: store, Scope: scope, Options: []core.Option{core.WithDedup(time.Hour)}},
		"an option": {Locker: locks, Store: store, Scope: scope, Options: []core.Option{core.WithTTL(1)}},
	} {
		if _, err := idempotency.New(c); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	locktest.Panics(t, "idempotency: ", func() { idempotency.Middleware(locks, nil, scope) })
}

// Gin's c.Stream panics without the one. Nobody could keep what goes over a connection.
func TestAWriterKnowsOfTheClientAndGivesItsConnectionToNobody(t *testing.T) {
	t.Parallel()
	p := newPayments(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = w.(http.CloseNotifier).CloseNotify() //nolint:staticcheck // SA1019: see above
		if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("hijacked: %v", err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	for range 2 {
		if w := p.ask("k1", ""); w.Code != http.StatusCreated {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	p.ranTimes(1)
}

// Two operations must never be taken for one, whatever stands outside the middleware.
func TestTheFingerprintIsOfWhatTheClientSent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ first, second string }{ // method, URL, method override
		"StripPrefix":    {"POST http://shop.test/charge/42", "POST http://shop.test/refund/42"},
		"Hosts":          {"POST http://a.test/charge/1", "POST http://b.test/charge/1"},
		"Queries":        {"POST http://a.test/charge/1?to=1", "POST http://a.test/charge/1?to=2"},
		"Escapes":        {"POST http://a.test/charge/a%2Fb", "POST http://a.test/charge/a/b"},
		"Methods":        {"POST http://a.test/charge/1", "PATCH http://a.test/charge/1"},
		"OverrideInside": {"POST http://a.test/charge/1 PUT", "POST http://a.test/charge/1 DELETE"}, // as Echo's MethodOverride in Use
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPayments(t, echoed)
			mux := http.NewServeMux()
			mux.Handle("/charge/", http.StripPrefix("/charge", p.h))
			mux.Handle("/refund/", http.StripPrefix("/refund", p.h))
			p.h = mux
			ask := func(line string) *httptest.ResponseRecorder {
				parts := append(strings.Split(line, " "), "")
				return p.send(t.Context(), parts[0], parts[1], "k1", "", "X-HTTP-Method-Override", parts[2])
			}
			p.wants(ask(test.first), 201, "paid", false)
			p.wants(ask(test.first), 201, "paid", true)
			p.wants(ask(test.second), 422, httpmw.TypeKeyReused, false)
			p.ranTimes(1)
		})
	}
}

func TestAStoreThatDoesNotAnswerIsWaitedForNoLongerThanItsBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPayments(t, echoed)
		p.store.load = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		begun := time.Now()
		p.wants(p.ask("k1", "10"), 503, httpmw.TypeUnavailable, false)
		p.ranTimes(0)
		if took := time.Since(begun); took > 5*time.Second {
			t.Error(took)
		}
	})
}

// While a body is on its way, nothing is locked.
func TestABodyIsReadBeforeItsKeyIsLocked(t *testing.T) {
	t.Parallel()
	p := newPayments(t, echoed)
	body, upload := io.Pipe()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", body)
	r.Header.Set("Idempotency-Key", "k1")
	answered := make(chan *httptest.ResponseRecorder)
	go func() {
		w := httptest.NewRecorder()
		p.h.ServeHTTP(w, r)
		answered <- w
	}()
	_, _ = io.WriteString(upload, "1")
	p.wants(p.ask("k1", "10"), 201, "paid", false)
	_, _ = io.WriteString(upload, "0")
	_ = upload.Close()
	p.wants(<-answered, 201, "paid 10", true)
}

func TestMemoryStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, new(idempotency.MemoryStore))
}
