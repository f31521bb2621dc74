package echo5mw

import (
	"github.com/labstack/echo/v5"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
	"github.com/holdfast-go/holdfast/httpmw/internal/settings"
)

// Bind returns a handler that binds each request to a T, as c.Bind does, holds the lock that key names, and
// calls handler with the T. It binds once, before the lock is taken: so the lock is for what the handler reads,
// whatever a client puts into path, query, form and body. A handler that binds or reads them again can find other
// values.
//
//	e.POST("/pay", echo5mw.Bind(locks, "order:{OrderID}", pay))
//
//	func pay(c *echo.Context, req *PayRequest) error { … }
//
// The sources of key are the fields of T by their names in Go, {OrderID} or {Order.ID}: strings, integers, bools
// and types that implement [encoding.TextMarshaler]. They need no form. An empty string, 0 and false count as missing.
//
// What c.Bind refuses is answered by Echo, with 400 or 415. Everything else is as with [Lock]. Bind panics on a key or
// an option that cannot work; [NewBind] returns an error instead.
func Bind[T any](l *core.Locker, key string, handler func(c *echo.Context, req *T) error, opts ...core.Option) echo.HandlerFunc {
	return rule.Must[echo.HandlerFunc]("echo5mw")(NewBind(Config{Locker: l, Key: key, Options: opts}, handler))
}

// NewBind is [Bind] with all settings but a KeyFunc and MaxBody, which do not apply. Settings that cannot work
// are [core.ErrInvalid].
func NewBind[T any](c Config, handler func(c *echo.Context, req *T) error) (echo.HandlerFunc, error) {
	l, err := newLock(c, rule.Fields[*request, T]())
	return settings.Bind(l, err, func(c *echo.Context, req *T) error { return c.Bind(req) }, handler)
}
