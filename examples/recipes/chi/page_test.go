package recipe_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	recipe "github.com/holdfast-go/holdfast/examples/recipes/chi"
	"github.com/holdfast-go/holdfast/httpmw"
)

// The code of docs/nethttp.md for chi; examples/readme_test.go compares them.
func TestTheCodeOfThePageRuns(t *testing.T) {
	t.Parallel()
	locks, err := core.New(memlock.New())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Close(context.Background()) }()
	var name string
	pay := func(_ http.ResponseWriter, r *http.Request) {
		lease, _ := core.FromContext(r.Context())
		name = lease.Name()
	}

	r := chi.NewRouter()
	r.With(recipe.PathValues, httpmw.Lock(locks, "order:{id}")).Post("/orders/{id}/pay", pay)

	r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders/%34%32/pay", http.NoBody))
	if name != "order:42" {
		t.Errorf("held %q", name)
	}
}
