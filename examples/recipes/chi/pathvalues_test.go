package recipe_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	recipe "github.com/holdfast-go/holdfast/examples/recipes/chi"
	"github.com/holdfast-go/holdfast/examples/recipes/internal/recipetest"
	"github.com/holdfast-go/holdfast/httpmw"
)

// mount is a [recipetest.Mount].
func mount(route string, lock func(http.Handler) http.Handler) http.Handler {
	r := chi.NewRouter()
	r.With(recipe.PathValues, lock).Post(route, recipetest.LeaseName)
	return r
}

func TestKeysHaveChisParametersAndRoute(t *testing.T) {
	t.Parallel()
	recipetest.Router(t, mount, "/orders/{id}", true)
	recipetest.Key(t, mount, "order:{id|text}", "/orders/{id}", "/orders/a%2Fb", http.StatusOK, "order:a/b")
	recipetest.Key(t, mount, "order:{id|text}", "/orders/{id}", "/orders/%2534", http.StatusOK, "order:%2534")
	recipetest.Key(t, mount, "order:{id|int}", "/orders/{id:[0-9]+}", "/orders/42", http.StatusOK, "order:42")
	recipetest.Key(t, mount, "file:{*|text}", "/files/*", "/files/a/b", http.StatusOK, "file:a/b")
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

// The code of docs/guides/http.md for chi; examples/readme_test.go compares them.
func TestTheCodeOfThePageRuns(t *testing.T) {
	t.Parallel()
	locks, pay := recipetest.NewLocker(t), recipetest.LeaseName

	r := chi.NewRouter()
	r.With(recipe.PathValues, httpmw.Lock(locks, "order:{id|int}")).Post("/orders/{id}/pay", pay)

	if w := recipetest.Call(t, r, "/orders/%34%32/pay"); w.Body.String() != "order:42" {
		t.Errorf("held %q", w.Body)
	}
}
