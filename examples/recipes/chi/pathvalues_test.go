package recipe_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	recipe "github.com/holdfast-go/holdfast/examples/recipes/chi"
	"github.com/holdfast-go/holdfast/httpmw"
)

func newLocker(t *testing.T) *core.Locker {
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

func call(t *testing.T, h http.Handler, target string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, http.NoBody)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// leaseName answers with the name of the lease.
func leaseName(w http.ResponseWriter, r *http.Request) {
	x, _ := core.FromContext(r.Context())
	_, _ = w.Write([]byte(x.Name()))
}

func TestKeysHaveChisParametersAndRoute(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		key, route, path string
		status           int
		want             string
	}{
		{"order:{id}", "/orders/{id}", "/orders/42", http.StatusOK, "order:42"},
		{"order:{id}", "/orders/{id}", "/orders/%34%32", http.StatusOK, "order:42"},
		{"order:{id}", "/orders/{id}", "/orders/a%2Fb", http.StatusOK, "order:a/b"},
		{"order:{id}", "/orders/{id}", "/orders/%2534", http.StatusOK, "order:%2534"},
		{"order:{id}", "/orders/{id:[0-9]+}", "/orders/42", http.StatusOK, "order:42"},
		{"file:{*}", "/files/*", "/files/a/b", http.StatusOK, "file:a/b"},
		{"{http:route}", "/orders/{id}", "/orders/42", http.StatusOK, "/orders/%7Bid%7D"},
		{"order:{x}", "/orders/{id}", "/orders/42", http.StatusInternalServerError, httpmw.TypeRoute},
		{"order:{query:x}", "/orders/{id}", "/orders/42", http.StatusBadRequest, httpmw.TypeInvalidKey},
	} {
		r := chi.NewRouter()
		r.With(recipe.PathValues, httpmw.Lock(newLocker(t), test.key)).Post(test.route, leaseName)
		if w := call(t, r, test.path); w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s of %s: %d %s, want %d %s", test.key, test.path, w.Code, w.Body, test.status, test.want)
		}
	}
}

func TestOfASubRouterUseFindsOuterParametersOnly(t *testing.T) {
	t.Parallel()
	locks := newLocker(t)
	r := chi.NewRouter()
	r.Route("/orders/{id}", func(r chi.Router) {
		r.Use(recipe.PathValues, httpmw.Lock(locks, "order:{id}"))
		r.Post("/pay", leaseName)
	})
	r.Route("/refunds", func(r chi.Router) {
		r.Use(httpmw.Lock(locks, "order:{id}"))
		r.Post("/{id}", leaseName)
	})
	if w := call(t, r, "/orders/%34%32/pay"); w.Body.String() != "order:42" {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	if w := call(t, r, "/refunds/42"); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), httpmw.TypeRoute) {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

func TestWithEveryRouteIsAnOperationOfItsOwnAndUseHasOneForAll(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mount func(r chi.Router, once func(http.Handler) http.Handler)
		ship  int
	}{
		"With": {func(r chi.Router, once func(http.Handler) http.Handler) {
			r.With(once).Post("/pay", leaseName)
			r.With(once).Post("/ship", leaseName)
		}, http.StatusOK},
		"Use": {func(r chi.Router, once func(http.Handler) http.Handler) {
			r.Use(once)
			r.Post("/pay", leaseName)
			r.Post("/ship", leaseName)
		}, http.StatusConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := chi.NewRouter()
			r.Route("/orders/{id}", func(r chi.Router) {
				test.mount(r, httpmw.Lock(newLocker(t), "order:{id}", core.WithDedup(time.Hour)))
			})
			for _, step := range []struct {
				path string
				want int
			}{{"/orders/42/pay", 200}, {"/orders/42/ship", test.ship}, {"/orders/42/pay", 409}} {
				if w := call(t, r, step.path); w.Code != step.want {
					t.Errorf("%s: %d %s, want %d", step.path, w.Code, w.Body, step.want)
				}
			}
		})
	}
}

func TestTimeoutBoundsTheWaitAndTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := newLocker(t)
		r := chi.NewRouter()
		r.Use(middleware.Timeout(time.Second))
		r.With(httpmw.Lock(locks, "order:{id}", core.WithWait(core.WaitForever))).Post("/orders/{id}", func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			if cause := context.Cause(r.Context()); !errors.Is(cause, context.DeadlineExceeded) {
				t.Errorf("cause: %v", cause)
			}
		})
		err := locks.Do(t.Context(), "order:42", func(context.Context) error {
			if w := call(t, r, "/orders/42"); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), httpmw.TypeHeld) {
				t.Errorf("held: answered %d %s", w.Code, w.Body)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if w := call(t, r, "/orders/42"); w.Code != http.StatusGatewayTimeout {
			t.Errorf("worked too long: answered %d %s, want chi's 504", w.Code, w.Body)
		}
	})
}

func TestAPanicReleasesAndIsNotDone(t *testing.T) {
	t.Parallel()
	for _, outside := range []bool{true, false} {
		calls := 0
		chain := chi.Middlewares{httpmw.Lock(newLocker(t), "order:{id}", core.WithDedup(time.Hour)), recoverer}
		if outside {
			chain[0], chain[1] = chain[1], chain[0]
		}
		r := chi.NewRouter()
		r.With(chain...).Post("/orders/{id}", func(w http.ResponseWriter, r *http.Request) {
			if calls++; calls == 1 {
				panic("thrown")
			}
			leaseName(w, r)
		})
		for i, want := range []int{http.StatusInternalServerError, http.StatusOK, http.StatusConflict} {
			if w := call(t, r, "/orders/42"); w.Code != want {
				t.Errorf("Recoverer outside: %t, request %d: %d %s, want %d", outside, i, w.Code, w.Body, want)
			}
		}
	}
}

// recoverer is middleware.Recoverer with a log entry that does not print stacks.
func recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		middleware.Recoverer(next).ServeHTTP(w, middleware.WithLogEntry(r, silent{}))
	})
}

type silent struct{}

func (silent) Write(int, int, http.Header, time.Duration, any) {}
func (silent) Panic(any, []byte)                               {}

func TestStrangersDoNotReachTheLock(t *testing.T) {
	t.Parallel()
	locks := newLocker(t)
	r := chi.NewRouter()
	auth := middleware.BasicAuth("shop", map[string]string{"ann": "right"})
	r.With(auth, httpmw.Lock(locks, "order:{id}")).Post("/orders/{id}", leaseName)
	if err := locks.Close(t.Context()); err != nil { // who reaches the lock gets 503
		t.Fatal(err)
	}
	if w := call(t, r, "/orders/42"); w.Code != http.StatusUnauthorized {
		t.Errorf("answered %d", w.Code)
	}
	if w := call(t, r, "/orders/42", "Authorization: Basic YW5uOnJpZ2h0"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("answered %d", w.Code)
	}
}
