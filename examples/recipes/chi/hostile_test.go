package recipe_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	recipe "github.com/holdfast-go/holdfast/examples/recipes/chi"
	"github.com/holdfast-go/holdfast/httpmw"
)

func TestHostilePathsGetLocksOfTheirOwnNames(t *testing.T) {
	t.Parallel()
	r := chi.NewRouter()
	lock := httpmw.Lock(newLocker(t), strings.Replace(hostile.Template, "{v}", "{id}", 1))
	r.With(recipe.PathValues, lock).Post("/orders/{id}", leaseName)
	var names hostile.Names
	for what, value := range hostile.Values() {
		w := call(t, r, "/orders/"+url.PathEscape(value))
		if w.Code != http.StatusOK {
			t.Errorf("%s: answered %d %s", what, w.Code, w.Body)
			continue
		}
		names.Check(t, value, w.Body.String())
	}
}
