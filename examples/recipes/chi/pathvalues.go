// Package recipe has chi hold a lock around a route. Package httpmw is made for it: chi's
// middleware is net/http's. Copy PathValues.
//
//	r.With(recipe.PathValues, httpmw.Lock(locks, "order:{id|int}")).Post("/orders/{id}/pay", pay)
//
// With, and not Use: the middleware of With runs when the route and its parameters are known. In
// a sub-router under /orders/{id} Use finds {id} too.
//
// The lock is the last one: middleware.Recoverer, Timeout, Compress and BasicAuth stand before it.
package recipe

import (
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
)

// PathValues unescapes path values. Chi has them as they were sent, if a path has escapes
// that it could do without, such as /orders/%34%32, and the lock refuses those. It is
// chi.URLParam that stays as it is: handlers read r.PathValue, as the lock does.
func PathValues(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawPath != "" { // else chi has routed by URL.Path, which is unescaped
			params := chi.RouteContext(r.Context()).URLParams
			for i, name := range params.Keys {
				if v, err := url.PathUnescape(params.Values[i]); err == nil {
					r.SetPathValue(name, v)
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}
