package echo5mw

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/labstack/echo/v5"
)

// CheckRoute finds a mistyped key when its route is registered, and not at the first request. Give it
// to Echo before the routes:
//
//	e := echo.New()
//	e.OnAddRoute = echo5mw.CheckRoute
//
// It returns [core.ErrInvalid], which Echo makes a panic of except in AddRoute, if a route has a lock
// whose key names a path parameter that the route does not have, or has one as text, "order:id" for
// "order:{id}". It does not see middleware of Echo.Use, nor a lock inside middleware of your own.
func CheckRoute(route echo.Route) error {
	if route.Method == echo.RouteNotFound { // a group has such routes
		return nil
	}
	for _, mw := range route.Middlewares {
		l := lockOf(mw)
		if l == nil {
			continue
		}
		if err := l.door.CheckRoute(route.Method+" "+route.Path, params(route.Path)); err != nil {
			return fmt.Errorf("echo5mw: %w", err)
		}
	}
	return nil
}

// middleware makes the middleware of a lock. Its code has one address, by which lockOf knows it.
//
//go:noinline
func middleware(l *lock) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc { // called for every request
		if next == nil {
			return l.tell
		}
		return func(c *echo.Context) error { return l.serve(c, next) }
	}
}

// asked is what lockOf puts into a context, to be told whose middleware it is.
const asked = "holdfast: whose lock"

func (l *lock) tell(c *echo.Context) error {
	c.Set(asked, l)
	return nil
}

// lockOf returns the lock behind our own middleware, nil for any other.
func lockOf(mw echo.MiddlewareFunc) *lock {
	if reflect.ValueOf(mw).Pointer() != reflect.ValueOf(middleware(nil)).Pointer() {
		return nil
	}
	c := echo.NewContext(nil, nil)
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

// unrouted says that the router has found no route for a request, so that Echo answers 404 or 405.
func (l *lock) unrouted(c *echo.Context) bool {
	r := c.RouteInfo()
	return r.Name == echo.NotFoundRouteName || r.Name == echo.MethodNotAllowedRouteName || r.Method == echo.RouteNotFound
}
