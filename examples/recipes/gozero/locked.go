// Package recipe has go-zero's REST server hold a lock around a route. Copy Locked.
//
//	server.AddRoute(recipe.Locked(rest.Route{
//		Method: http.MethodPost, Path: "/orders/:id/pay", Handler: pay,
//	}, httpmw.Lock(locks, "order:{id|int}")))
//
// Around generated routes, map it over their slice. go-zero's own handlers (recovery, timeout, JWT) and the
// middleware of Server.Use stand outside. go-zero's timeout answers its client while the handler runs on: the
// lock is held until the handler has returned.
//
// For a zrpc server it is grpcmw: server.AddUnaryInterceptors(grpcmw.UnaryServerInterceptor(locks, …)).
package recipe

import (
	"net/http"

	"github.com/zeromicro/go-zero/rest"
	"github.com/zeromicro/go-zero/rest/pathvar"
)

// Locked returns a route with a lock around its handler. The request gets its path values and its pattern
// as net/http has them.
func Locked(route rest.Route, lock func(http.Handler) http.Handler) rest.Route {
	inner := lock(route.Handler)
	route.Handler = func(w http.ResponseWriter, r *http.Request) {
		for name, value := range pathvar.Vars(r) {
			r.SetPathValue(name, value)
		}
		r.Pattern = route.Path // a part of the label that shows who holds a name
		inner.ServeHTTP(w, r)
	}
	return route
}
