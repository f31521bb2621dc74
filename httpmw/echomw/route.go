package echomw

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/labstack/echo/v4"
)

// routes remembers which routes there are, since Echo tells only all of them. What is missing is not
// remembered: a route may be added later.
type routes struct {
	known  sync.Map    // target → struct{}
	behind atomic.Bool // the router: there was a request with a path
}

type target struct {
	router       *echo.Router
	method, path string
}

// unrouted says that the router has found no route for a request, so that Echo answers 404 or 405. To
// a lock that stands before the router (Echo.Pre) every request looks like one of them, and it must
// not let them pass. So no path says something only if there was one before. Until then the router is
// asked, and a key that needs nothing of a route is locked.
func (l *lock) unrouted(c echo.Context) bool {
	path, method := c.Path(), c.Request().Method
	if path == "" {
		return l.routes.behind.Load() || l.door.FromRoute() && !matches(c)
	}
	if !l.routes.behind.Load() {
		l.routes.behind.Store(true)
	}
	router := routerOf(c)
	if _, ok := l.routes.known.Load(target{router, method, path}); ok {
		return false
	}
	methods := methodsOf(router, path)
	if len(methods) > 0 && !slices.Contains(methods, method) {
		return true
	}
	if len(methods) > 0 {
		l.routes.known.Store(target{router, method, path}, struct{}{})
	}
	return false
}

// methodsOf returns nothing for a path that the router does not have.
func methodsOf(router *echo.Router, path string) []string {
	var methods []string
	for _, r := range router.Routes() {
		if r.Path == path {
			methods = append(methods, r.Method)
		}
	}
	return methods
}

// matches says whether the router has a route for a request that it was not asked about.
func matches(c echo.Context) bool {
	e, r := c.Echo(), c.Request()
	probe := e.AcquireContext()
	defer e.ReleaseContext(probe)
	probe.Reset(r, http.ResponseWriter(nil))
	routerOf(c).Find(r.Method, echo.GetPath(r), probe)
	return probe.Path() != ""
}

// routerOf is the router that serves the request: one of Echo.Host, or the default one.
func routerOf(c echo.Context) *echo.Router {
	if router := c.Echo().Routers()[c.Request().Host]; router != nil {
		return router
	}
	return c.Echo().Router()
}
