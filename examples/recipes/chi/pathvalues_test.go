package recipe_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	recipe "github.com/holdfast-go/holdfast/examples/recipes/chi"
	"github.com/holdfast-go/holdfast/examples/recipes/internal/recipetest"
	"github.com/holdfast-go/holdfast/httpmw"
)

// mount is a [recipetest.Mount] with middleware outside the lock.
func mount(outside ...func(http.Handler) http.Handler) recipetest.Mount {
	return func(route string, lock func(http.Handler) http.Handler) http.Handler {
		r := chi.NewRouter()
		r.With(append(outside, recipe.PathValues, lock)...).Post(route, recipetest.LeaseName)
		return r
	}
}

func TestKeysHaveChisParametersAndRoute(t *testing.T) {
	t.Parallel()
	recipetest.Key(t, mount(), "order:{id|int}", "/orders/{id}", "/orders/42", http.StatusOK, "order:42")
	recipetest.Key(t, mount(), "order:{id|int}", "/orders/{id}", "/orders/%34%32", http.StatusOK, "order:42")
	recipetest.Key(t, mount(), "order:{id|text}", "/orders/{id}", "/orders/a%2Fb", http.StatusOK, "order:a/b")
	recipetest.Key(t, mount(), "order:{id|text}", "/orders/{id}", "/orders/%2534", http.StatusOK, "order:%2534")
	recipetest.Key(t, mount(), "order:{id|int}", "/orders/{id:[0-9]+}", "/orders/42", http.StatusOK, "order:42")
	recipetest.Key(t, mount(), "file:{*|text}", "/files/*", "/files/a/b", http.StatusOK, "file:a/b")
	recipetest.Key(t, mount(), "order:{x|int}", "/orders/{id}", "/orders/42", http.StatusInternalServerError, httpmw.TypeRoute)
	recipetest.Key(t, mount(), "order:{query:x|int}", "/orders/{id}", "/orders/42", http.StatusBadRequest, httpmw.TypeInvalidKey)
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
		r.Post("/pay", recipetest.LeaseName)
	})
	r.Route("/refunds", func(r chi.Router) {
		r.Use(httpmw.Lock(locks, "order:{id|int}"))
		r.Post("/{id}", recipetest.LeaseName)
	})
	if w := recipetest.Call(t, r, "/orders/%34%32/pay"); w.Body.String() != "order:42" {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	if w := recipetest.Call(t, r, "/refunds/42"); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), httpmw.TypeRoute) {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

func TestStrangersDoNotReachTheLock(t *testing.T) {
	t.Parallel()
	recipetest.Strangers(t, mount(middleware.BasicAuth("shop", map[string]string{"ann": "right"})), "/orders/{id}")
}
