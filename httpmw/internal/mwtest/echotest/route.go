package echotest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
)

func (v Version[C, H, M]) sources(t *testing.T) {
	locks := mwtest.MemoryLocker(t)
	for _, test := range []struct {
		key, route, path string
		status           int
		name             string
	}{
		{"file:{*|text}", "/files/*", "/files/a/b", http.StatusOK, "file:a/b"},
		{"file:{*|text}", "/files/*", "/files/a%2Fb/%63", http.StatusOK, "file:a/b/c"},
		{"file:{*|text}", "/files/*", "/files/", http.StatusBadRequest, ""},
		{"order:{i|int}", "/orders/:id", "/orders/42", http.StatusInternalServerError, ""},
		{"order:{id|int}", "/orders/:id/items", "/orders//items", http.StatusBadRequest, ""},
		{"order:{id|text}", "/orders/:id", "/orders/%2534%41", http.StatusBadRequest, ""}, // a handler may read "%34A", or unescape it
		{"order:{id|text}", "/orders/:id", "/orders/%2541", http.StatusBadRequest, ""},
		{"order:{id|text}", "/orders/:id", "/orders/100%25", http.StatusOK, "order:100%25"},
		{"order:{id|text}", "/orders/:id", "/orders/%41", http.StatusOK, "order:A"},
	} {
		e := v.Serve(App[C, H, M]{
			Routes: []string{"POST " + test.route}, With: []M{v.Lock(locks, test.key)}, Handler: leaseName[C],
		})
		w := mwtest.Call(t, e, http.MethodPost, test.path)
		if w.Code != test.status || w.Code == http.StatusOK && w.Body.String() != test.name {
			t.Errorf("%s of %s: %d %s, want %d %s", test.key, test.path, w.Code, w.Body, test.status, test.name)
		}
	}
}

func (v Version[C, H, M]) beforeTheRouter(t *testing.T) {
	locks := mwtest.MemoryLocker(t)
	e := v.Serve(App[C, H, M]{Pre: []M{v.Lock(locks, "order:{id|int}")}, Routes: []string{pay}, Handler: leaseName[C]})
	if status, body := order42(t, e); status != http.StatusInternalServerError {
		t.Errorf("%d %s, want 500", status, body)
	}
}

// On Echo.Use and on groups a lock sees requests that no route is for. It does not let them pass: who can make a
// request look like one of them would get by the lock.
func (v Version[C, H, M]) withoutARoute(t *testing.T) {
	locks := mwtest.MemoryLocker(t)
	for _, key := range []string{"order:{id|int}", "tenant:{header:X-Tenant|text}"} {
		lock, byPath := v.Lock(locks, key), key == "order:{id|int}"
		for where, e := range map[string]http.Handler{
			"Use":   v.Serve(App[C, H, M]{Use: []M{lock}, Routes: []string{pay}, Handler: leaseName[C]}),
			"Group": v.Serve(App[C, H, M]{Group: "/api", With: []M{lock}, Routes: []string{pay}, Handler: leaseName[C]}),
		} {
			prefix := map[string]string{"Group": "/api"}[where]
			if status, body := ofTenant(t, e, prefix+"/orders/42"); status != http.StatusOK || body != map[bool]string{true: "order:42", false: "tenant:acme"}[byPath] {
				t.Errorf("%s, %s: a request with a route: %d %s", where, key, status, body)
			}
			want := map[bool]int{true: http.StatusInternalServerError, false: http.StatusNotFound}[byPath]
			status, body := ofTenant(t, e, prefix+"/nothing/here")
			if where == "Group" && v.Package == "echo5mw" && status == http.StatusNotFound {
				continue // Echo v5 does not ask a group's middleware
			}
			if status != want {
				t.Errorf("%s, %s: one without: %d %s, want %d", where, key, status, body, want)
			}
			err := locks.Do(t.Context(), "tenant:acme", func(context.Context) error {
				if status, body := ofTenant(t, e, prefix+"/nothing/here"); !byPath && status != http.StatusConflict {
					t.Errorf("%s, %s: one without, while it is held: %d %s", where, key, status, body)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// ofTenant posts for the tenant "acme".
func ofTenant(t *testing.T, h http.Handler, path string) (status int, body string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody)
	r.Header.Set("X-Tenant", "acme")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// Before the router there is no route for any request, also after one that came behind it.
func (v Version[C, H, M]) beforeAndBehindTheRouter(t *testing.T) {
	locks := mwtest.MemoryLocker(t)
	lock := v.Lock(locks, "tenant:{header:X-Tenant|text}")
	behind := v.Serve(App[C, H, M]{Routes: []string{pay}, Handler: leaseName[C], With: []M{lock}})
	before := v.Serve(App[C, H, M]{Routes: []string{pay}, Handler: leaseName[C], Pre: []M{lock}})
	for _, e := range []http.Handler{before, behind, before} {
		if status, body := ofTenant(t, e, "/orders/42"); status != http.StatusOK || body != "tenant:acme" {
			t.Errorf("%d, under %q", status, body)
		}
	}
}

func passes(next http.Handler) http.Handler { return next }

func (v Version[C, H, M]) outsideGetsItsOwnBack(t *testing.T) {
	for name, handler := range map[string]H{
		"Returns": leaseName[C],
		"Wrapped": v.Wrap(passes)(leaseName[C]),
		"Panics":  func(C) error { panic("thrown") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outside := func(next H) H {
				return func(c C) error {
					r, response, writer := c.Request(), v.Response(c), v.Writer(c)
					defer func() {
						_ = recover()
						if c.Request() != r || v.Response(c) != response || v.Writer(c) != writer {
							t.Error("not restored")
						}
						if err := c.Request().Context().Err(); err != nil {
							t.Errorf("the context outside: %v", err)
						}
					}()
					return next(c)
				}
			}
			order42(t, v.Serve(App[C, H, M]{
				Use: []M{outside}, Routes: []string{pay}, Handler: handler,
				With: []M{v.Lock(mwtest.MemoryLocker(t), "order:{id|int}")},
			}))
		})
	}
}

func (v Version[C, H, M]) innerWriterStays(t *testing.T) {
	var mine struct{ http.ResponseWriter }
	order42(t, v.orders(func(c C) error {
		mine.ResponseWriter = v.Writer(c)
		v.SetWriter(c, &mine)
		return nil
	}, func(next H) H {
		return func(c C) error {
			err := next(c)
			if v.Writer(c) != &mine {
				t.Error("the writer that a handler has put in was taken out")
			}
			return err
		}
	}, v.Lock(mwtest.MemoryLocker(t), "order:{id|int}")))
}

// echo.WrapMiddleware replaces the response and does not put it back.
func (v Version[C, H, M]) lossBehindWrapped(t *testing.T) {
	status, body := order42(t, v.orders(wait[C](nil), v.Lock(mwtest.MemoryLocker(t), "order:{id|int}", short), v.Wrap(passes)))
	if status != http.StatusServiceUnavailable || !strings.Contains(body, httpmw.TypeLost) {
		t.Errorf("answered %d %s", status, body)
	}
}

// The router has chosen the handler before that middleware changes the method.
func (v Version[C, H, M]) overridden(t *testing.T) {
	e := v.Serve(App[C, H, M]{
		Use: []M{v.Override}, Routes: []string{pay}, Handler: leaseName[C], With: []M{v.Lock(mwtest.MemoryLocker(t), "order:{id|int}")},
	})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders/42", http.NoBody)
	r.Header.Set("X-HTTP-Method-Override", http.MethodPatch)
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	if w.Body.String() != "order:42" {
		t.Errorf("%d, under %q", w.Code, w.Body)
	}
}
