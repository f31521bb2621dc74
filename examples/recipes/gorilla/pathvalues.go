// Package recipe has gorilla/mux hold a lock around a route. Package httpmw is made for it: gorilla's
// middleware is net/http's. Copy PathValues.
//
//	r.Handle("/orders/{id}/pay", recipe.PathValues(httpmw.Lock(locks, "order:{id|int}")(pay))).Methods(http.MethodPost)
//
// Router.Use works too, also on a sub-router: gorilla's middleware runs when the route and its variables
// are known. Requests without a route do not reach it.
//
// The lock is the last one: recovery, compression, timeouts and authentication stand before it.
package recipe

import (
	"net/http"

	"github.com/gorilla/mux"
)

// PathValues gives a request its path values and its pattern as net/http has them, for the lock, and for
// handlers that read r.PathValue. Variables are unescaped, except with Router.UseEncodedPath: unescape
// them here then, with url.PathUnescape, or /orders/%34%32 and /orders/42 would be two orders.
func PathValues(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range mux.Vars(r) {
			r.SetPathValue(name, value)
		}
		if route := mux.CurrentRoute(r); route != nil {
			if template, err := route.GetPathTemplate(); err == nil {
				r.Pattern = template // a part of the label that shows who holds a name
			}
		}
		next.ServeHTTP(w, r)
	})
}
