package recipe_test

import (
	"net/http"
	"os"
	"testing"

	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/rest"
	"github.com/zeromicro/go-zero/rest/router"

	recipe "github.com/holdfast-go/holdfast/examples/recipes/gozero"
	"github.com/holdfast-go/holdfast/examples/recipes/internal/recipetest"
	"github.com/holdfast-go/holdfast/httpmw"
)

func TestMain(m *testing.M) {
	logx.Disable()
	os.Exit(m.Run())
}

// serve mounts routes in go-zero's router.
func serve(t *testing.T, routes ...rest.Route) http.Handler {
	t.Helper()
	r := router.NewRouter()
	for _, route := range routes {
		if err := r.Handle(route.Method, route.Path, route.Handler); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func post(path string) rest.Route {
	return rest.Route{Method: http.MethodPost, Path: path, Handler: recipetest.LeaseName}
}

// mount is a [recipetest.Mount] with middleware outside the lock.
func mount(t *testing.T, outside ...rest.Middleware) recipetest.Mount {
	t.Helper()
	return func(route string, lock func(http.Handler) http.Handler) http.Handler {
		return serve(t, rest.WithMiddlewares(outside, recipe.Locked(post(route), lock))...)
	}
}

func TestKeysHaveGoZerosParametersAndRoute(t *testing.T) {
	t.Parallel()
	recipetest.Key(t, mount(t), "order:{id|int}", "/orders/:id", "/orders/42", http.StatusOK, "order:42")
	recipetest.Key(t, mount(t), "order:{id|int}", "/orders/:id", "/orders/%34%32", http.StatusOK, "order:42")
	recipetest.Key(t, mount(t), "order:{x|int}", "/orders/:id", "/orders/42", http.StatusInternalServerError, httpmw.TypeRoute)
	recipetest.Key(t, mount(t), "order:{query:x|int}", "/orders/:id", "/orders/42", http.StatusBadRequest, httpmw.TypeInvalidKey)
}

func TestHostilePathsGetLocksOfTheirOwnNames(t *testing.T) {
	t.Parallel()
	recipetest.Hostile(t, mount(t), "/orders/:id", false)
}

func TestStrangersDoNotReachTheLock(t *testing.T) {
	t.Parallel()
	recipetest.Strangers(t, mount(t, rest.ToMiddleware(recipetest.BasicAuth)), "/orders/:id")
}
