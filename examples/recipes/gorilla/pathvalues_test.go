package recipe_test

import (
	"net/http"
	"testing"

	"github.com/gorilla/mux"

	recipe "github.com/holdfast-go/holdfast/examples/recipes/gorilla"
	"github.com/holdfast-go/holdfast/examples/recipes/internal/recipetest"
	"github.com/holdfast-go/holdfast/httpmw"
)

// mount is a [recipetest.Mount].
func mount(route string, lock func(http.Handler) http.Handler) http.Handler {
	r := mux.NewRouter()
	r.Handle(route, recipe.PathValues(lock(http.HandlerFunc(recipetest.LeaseName)))).Methods(http.MethodPost)
	return r
}

func TestKeysHaveGorillasVariablesAndRoute(t *testing.T) {
	t.Parallel()
	recipetest.Router(t, mount, "/orders/{id}", false)
	recipetest.Key(t, mount, "order:{id|int}", "/orders/{id:[0-9]+}", "/orders/42", http.StatusOK, "order:42")
	recipetest.Key(t, mount, "file:{path|text}", "/files/{path:.*}", "/files/a/b", http.StatusOK, "file:a/b")
	recipetest.Key(t, mount, "file:{path|text}", "/files/{path:.*}", "/files/", http.StatusBadRequest, httpmw.TypeInvalidKey)
}

func TestUseOfASubRouterKnowsTheParameters(t *testing.T) {
	t.Parallel()
	r := mux.NewRouter()
	orders := r.PathPrefix("/orders/{id}").Subrouter()
	orders.Use(recipe.PathValues, httpmw.Lock(recipetest.NewLocker(t), "order:{id|int}"))
	orders.HandleFunc("/pay", recipetest.LeaseName).Methods(http.MethodPost)
	orders.HandleFunc("/ship", recipetest.LeaseName).Methods(http.MethodPost)
	for _, step := range []struct {
		path string
		want int
	}{{"/orders/42/pay", 200}, {"/orders/42/ship", 200}, {"/orders/x/pay", 400}, {"/orders/42/nothing", 404}} {
		if w := recipetest.Call(t, r, step.path); w.Code != step.want {
			t.Errorf("%s: %d %s, want %d", step.path, w.Code, w.Body, step.want)
		}
	}
}
