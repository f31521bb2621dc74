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
)

func TestMain(m *testing.M) {
	logx.Disable()
	os.Exit(m.Run())
}

func TestKeysHaveGoZerosParametersAndRoute(t *testing.T) {
	t.Parallel()
	recipetest.Router(t, func(route string, lock func(http.Handler) http.Handler) http.Handler {
		r := router.NewRouter()
		locked := recipe.Locked(rest.Route{Method: http.MethodPost, Path: route, Handler: recipetest.LeaseName}, lock)
		if err := r.Handle(locked.Method, locked.Path, locked.Handler); err != nil {
			t.Fatal(err)
		}
		return r
	}, "/orders/:id", false)
}
