package recipe_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/holdfast-go/holdfast/core"
	recipe "github.com/holdfast-go/holdfast/examples/recipes/chi"
	"github.com/holdfast-go/holdfast/examples/recipes/internal/recipetest"
	"github.com/holdfast-go/holdfast/httpmw"
)

// leaseName answers with the name of the lease.
func leaseName(w http.ResponseWriter, r *http.Request) {
	x, _ := core.FromContext(r.Context())
	_, _ = w.Write([]byte(x.Name()))
}

// mount is a [recipetest.Mount] with middleware outside the lock.
func mount(outside ...func(http.Handler) http.Handler) recipetest.Mount {
	return func(route string, lock func(http.Handler) http.Handler) http.Handler {
		r := chi.NewRouter()
		r.With(append(outside, recipe.PathValues, lock)...).Post(route, leaseName)
		return r
	}
}

func TestKeysHaveChisParametersAndRoute(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		key, route, path string
		status           int
		want             string
	}{
		{"order:{id|int}", "/orders/{id}", "/orders/42", http.StatusOK, "order:42"},
		{"order:{id|int}", "/orders/{id}", "/orders/%34%32", http.StatusOK, "order:42"},
		{"order:{id|text}", "/orders/{id}", "/orders/a%2Fb", http.StatusOK, "order:a/b"},
		{"order:{id|text}", "/orders/{id}", "/orders/%2534", http.StatusOK, "order:%2534"},
		{"order:{id|int}", "/orders/{id:[0-9]+}", "/orders/42", http.StatusOK, "order:42"},
		{"file:{*|text}", "/files/*", "/files/a/b", http.StatusOK, "file:a/b"},
		{"order:{x|int}", "/orders/{id}", "/orders/42", http.StatusInternalServerError, httpmw.TypeRoute},
		{"order:{query:x|int}", "/orders/{id}", "/orders/42", http.StatusBadRequest, httpmw.TypeInvalidKey},
	} {
		w := recipetest.Call(t, mount()(test.route, httpmw.Lock(recipetest.NewLocker(t), test.key)), test.path)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s of %s: %d %s, want %d %s", test.key, test.path, w.Code, w.Body, test.status, test.want)
		}
	}
}

func TestHostilePathsGetLocksOfTheirOwnNames(t *testing.T) {
	t.Parallel()
	recipetest.Hostile(t, mount(), "/orders/{id}", true)
}

func TestOfASubRouterUseFindsOuterParametersOnly(t *testing.T) {
	t.Parallel()
	locks := recipetest.NewLocker(t)
	r := chi.NewRouter()
	r.Route("/orders/{id}", func(r chi.Router) {
		r.Use(recipe.PathValues, httpmw.Lock(locks, "order:{id|int}"))
		r.Post("/pay", leaseName)
	})
	r.Route("/refunds", func(r chi.Router) {
		r.Use(httpmw.Lock(locks, "order:{id|int}"))
		r.Post("/{id}", leaseName)
	})
	if w := recipetest.Call(t, r, "/orders/%34%32/pay"); w.Body.String() != "order:42" {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	if w := recipetest.Call(t, r, "/refunds/42"); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), httpmw.TypeRoute) {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

func TestWithAndUseOfASubRouterKnowTheParameters(t *testing.T) {
	t.Parallel()
	for name, mount := range map[string]func(r chi.Router, lock func(http.Handler) http.Handler){
		"With": func(r chi.Router, lock func(http.Handler) http.Handler) { r.With(lock).Post("/pay", leaseName) },
		"Use": func(r chi.Router, lock func(http.Handler) http.Handler) {
			r.Use(lock)
			r.Post("/pay", leaseName)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := chi.NewRouter()
			r.Route("/orders/{id}", func(r chi.Router) { mount(r, httpmw.Lock(recipetest.NewLocker(t), "order:{id|int}")) })
			if w := recipetest.Call(t, r, "/orders/42/pay"); w.Code != http.StatusOK || w.Body.String() != "order:42" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

func TestTimeoutBoundsTheWaitAndTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := recipetest.NewLocker(t)
		r := chi.NewRouter()
		r.Use(middleware.Timeout(time.Second))
		r.With(httpmw.Lock(locks, "order:{id|int}", core.WithWait(core.WaitForever))).Post("/orders/{id}", func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			if cause := context.Cause(r.Context()); !errors.Is(cause, context.DeadlineExceeded) {
				t.Errorf("cause: %v", cause)
			}
		})
		err := locks.Do(t.Context(), "order:42", func(context.Context) error {
			if w := recipetest.Call(t, r, "/orders/42"); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), httpmw.TypeHeld) {
				t.Errorf("held: answered %d %s", w.Code, w.Body)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if w := recipetest.Call(t, r, "/orders/42"); w.Code != http.StatusGatewayTimeout {
			t.Errorf("worked too long: answered %d %s, want chi's 504", w.Code, w.Body)
		}
	})
}

func TestAPanicReleasesAndIsNotDone(t *testing.T) {
	t.Parallel()
	for _, outside := range []bool{true, false} {
		calls := 0
		chain := chi.Middlewares{httpmw.Lock(recipetest.NewLocker(t), "order:{id|int}", core.WithDedup(time.Hour), core.WithDedupScope("pay")), recoverer}
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
			if w := recipetest.Call(t, r, "/orders/42"); w.Code != want {
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
	recipetest.Strangers(t, mount(middleware.BasicAuth("shop", map[string]string{"ann": "right"})), "/orders/{id}")
}
