package fibermw

import (
	"github.com/gofiber/fiber/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
	"github.com/holdfast-go/holdfast/httpmw/internal/settings"
)

// Bind returns a handler that binds each request to a T, holds the lock that key names, and calls handler with the T. It binds
// once, before the lock is taken: so the lock is for what the handler reads, whatever a client puts into path, query, form and
// body. A handler that binds or reads them again can find other values.
//
//	app.Post("/pay", fibermw.Bind(locks, "order:{OrderID}", pay))
//
//	func pay(c fiber.Ctx, req *PayRequest) error { … }
//
// It binds as c.Bind().All does: path, body by its Content-Type, query, header and cookie. All fields of T are exported.
//
// The sources of key are the fields of T by their names in Go, {OrderID} or {Order.ID}: strings, integers, bools
// and types that implement [encoding.TextMarshaler]. They need no form. An empty string, 0 and false count as missing.
//
// What cannot be bound is answered with 400, and becomes the Problem's Err. Everything else is as with [Lock]. Bind panics
// on a key or an option that cannot work; [NewBind] returns an error instead.
func Bind[T any](l *core.Locker, key string, handler func(c fiber.Ctx, req *T) error, opts ...core.Option) fiber.Handler {
	return rule.Must[fiber.Handler]("fibermw")(NewBind(Config{Locker: l, Key: key, Options: opts}, handler))
}

// NewBind is [Bind] with all settings but a KeyFunc and MaxBody, which do not apply. Settings that cannot work
// are [core.ErrInvalid].
func NewBind[T any](c Config, handler func(c fiber.Ctx, req *T) error) (fiber.Handler, error) {
	l, err := newLock(c, rule.Fields[request, T]())
	return settings.Bind(l, err, func(c fiber.Ctx, req *T) error {
		if err := c.Bind().All(req); err != nil {
			return httpmw.ProblemOf(adapter.Outcome{Reason: adapter.BadKey, Err: err})
		}
		return nil
	}, handler)
}
