package recipe_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/mux"

	"github.com/holdfast-go/holdfast/core"
	recipe "github.com/holdfast-go/holdfast/examples/recipes/gorilla"
	"github.com/holdfast-go/holdfast/examples/recipes/internal/recipetest"
	"github.com/holdfast-go/holdfast/httpmw"
)

// leaseName answers with the name of the lease.
func leaseName(w http.ResponseWriter, r *http.Request) {
	x, _ := core.FromContext(r.Context())
	_, _ = w.Write([]byte(x.Name()))
}

// mount is a [recipetest.Mount] with middleware outside the lock.
func mount(outside ...mux.MiddlewareFunc) recipetest.Mount {
	return func(route string, lock func(http.Handler) http.Handler) http.Handler {
		r := mux.NewRouter()
		r.Use(outside...)
		r.Handle(route, recipe.PathValues(lock(http.HandlerFunc(leaseName)))).Methods(http.MethodPost)
		return r
	}
}

func TestKeysHaveGorillasVariablesAndRoute(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		key, route, path string
		status           int
		want             string
	}{
		{"order:{id|int}", "/orders/{id}", "/orders/42", http.StatusOK, "order:42"},
		{"order:{id|int}", "/orders/{id}", "/orders/%34%32", http.StatusOK, "order:42"},
		{"order:{id|int}", "/orders/{id:[0-9]+}", "/orders/42", http.StatusOK, "order:42"},
		{"file:{path|text}", "/files/{path:.*}", "/files/a/b", http.StatusOK, "file:a/b"},
		{"file:{path|text}", "/files/{path:.*}", "/files/", http.StatusBadRequest, httpmw.TypeInvalidKey},
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
	recipetest.Hostile(t, mount(), "/orders/{id}", false)
}

func TestUseOfASubRouterKnowsTheParameters(t *testing.T) {
	t.Parallel()
	r := mux.NewRouter()
	orders := r.PathPrefix("/orders/{id}").Subrouter()
	orders.Use(recipe.PathValues, httpmw.Lock(recipetest.NewLocker(t), "order:{id|int}"))
	orders.HandleFunc("/pay", leaseName).Methods(http.MethodPost)
	orders.HandleFunc("/ship", leaseName).Methods(http.MethodPost)
	for _, step := range []struct {
		path string
		want int
	}{{"/orders/42/pay", 200}, {"/orders/42/ship", 200}, {"/orders/x/pay", 400}, {"/orders/42/nothing", 404}} {
		if w := recipetest.Call(t, r, step.path); w.Code != step.want {
			t.Errorf("%s: %d %s, want %d", step.path, w.Code, w.Body, step.want)
		}
	}
}

func TestStrangersDoNotReachTheLock(t *testing.T) {
	t.Parallel()
	recipetest.Strangers(t, mount(recipetest.BasicAuth), "/orders/{id}")
}
