package recipe_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/rest"
	"github.com/zeromicro/go-zero/rest/router"

	"github.com/holdfast-go/holdfast/core"
	recipe "github.com/holdfast-go/holdfast/examples/recipes/gozero"
	"github.com/holdfast-go/holdfast/examples/recipes/internal/recipetest"
	"github.com/holdfast-go/holdfast/httpmw"
)

func TestMain(m *testing.M) {
	logx.Disable()
	os.Exit(m.Run())
}

// leaseName answers with the name of the lease.
func leaseName(w http.ResponseWriter, r *http.Request) {
	x, _ := core.FromContext(r.Context())
	_, _ = w.Write([]byte(x.Name()))
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
	return rest.Route{Method: http.MethodPost, Path: path, Handler: leaseName}
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
	for _, test := range []struct {
		key, route, path string
		status           int
		want             string
	}{
		{"order:{id|int}", "/orders/:id", "/orders/42", http.StatusOK, "order:42"},
		{"order:{id|int}", "/orders/:id", "/orders/%34%32", http.StatusOK, "order:42"},
		{"order:{x|int}", "/orders/:id", "/orders/42", http.StatusInternalServerError, httpmw.TypeRoute},
		{"order:{query:x|int}", "/orders/:id", "/orders/42", http.StatusBadRequest, httpmw.TypeInvalidKey},
	} {
		w := recipetest.Call(t, mount(t)(test.route, httpmw.Lock(recipetest.NewLocker(t), test.key)), test.path)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s of %s: %d %s, want %d %s", test.key, test.path, w.Code, w.Body, test.status, test.want)
		}
	}
}

func TestHostilePathsGetLocksOfTheirOwnNames(t *testing.T) {
	t.Parallel()
	recipetest.Hostile(t, mount(t), "/orders/:id", false)
}

func TestStrangersDoNotReachTheLock(t *testing.T) {
	t.Parallel()
	recipetest.Strangers(t, mount(t, rest.ToMiddleware(recipetest.BasicAuth)), "/orders/:id")
}
