package recipe_test

import (
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-go/holdfast/core"
	recipe "github.com/holdfast-go/holdfast/examples/recipes/chi"
	"github.com/holdfast-go/holdfast/examples/recipes/internal/recipetest"
	"github.com/holdfast-go/holdfast/httpmw"
)

// The code of docs/guides/http.md for chi; examples/readme_test.go compares them.
func TestTheCodeOfThePageRuns(t *testing.T) {
	t.Parallel()
	locks := recipetest.NewLocker(t)
	var name string
	pay := func(_ http.ResponseWriter, r *http.Request) {
		lease, _ := core.FromContext(r.Context())
		name = lease.Name()
	}

	r := chi.NewRouter()
	r.With(recipe.PathValues, httpmw.Lock(locks, "order:{id|int}")).Post("/orders/{id}/pay", pay)

	recipetest.Call(t, r, "/orders/%34%32/pay")
	if name != "order:42" {
		t.Errorf("held %q", name)
	}
}
