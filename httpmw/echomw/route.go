package echomw

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/labstack/echo/v4"
)

// CheckRoute finds a mistyped key when its route is registered, and not at the first request. Give it
// to Echo before the routes:
//
//	e := echo.New()
//	e.OnAddRouteHandler = echomw.CheckRoute
//
// It panics, as Echo does on a route that cannot work, if a route has a lock whose key names a path
// parameter that the route does not have, or has one as text, "order:id" for "order:{id}". It does not
// see middleware of Echo.Use, nor a lock inside middleware of your own.
func CheckRoute(_ string, route echo.Route, _ echo.HandlerFunc, with []echo.MiddlewareFunc) {
	if route.Method == echo.RouteNotFound { // a group has such routes
		return
	}
	for _, mw := range with {
		l := lockOf(mw)
		if l == nil {
			continue
		}
		if err := l.door.CheckRoute(route.Method+" "+route.Path, params(route.Path)); err != nil {
			panic(fmt.Sprintf("echomw: %v", err))
		}
	}
}

// middleware makes the middleware of a lock. Its code has one address, by which lockOf knows it.
//
//go:noinline
func middleware(l *lock) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc { // called for every request
		if next == nil {
			return l.tell
		}
		return func(c echo.Context) error { return l.serve(c, next) }
	}
}

// asked is what lockOf puts into a context, to be told whose middleware it is.
const asked = "holdfast: whose lock"

func (l *lock) tell(c echo.Context) error {
	c.Set(asked, l)
	return nil
}

// lockOf returns the lock behind our own middleware, nil for any other.
func lockOf(mw echo.MiddlewareFunc) *lock {
	if reflect.ValueOf(mw).Pointer() != reflect.ValueOf(middleware(nil)).Pointer() {
		return nil
	}
	c := echo.New().NewContext(nil, nil)
	_ = mw(nil)(c) // tell has no error
	l, _ := c.Get(asked).(*lock)
	return l
}

// params are the names of a path's parameters, as Echo has them.
func params(path string) []string {
	var names []string
	for rest := path; ; {
		i := strings.IndexAny(rest, ":*")
		if i < 0 {
			return names
		}
		if rest[i] == '*' {
			return append(names, "*")
		}
		name, _, _ := strings.Cut(rest[i+1:], "/")
		names = append(names, name)
		rest = rest[i+1+len(name):]
	}
}

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
