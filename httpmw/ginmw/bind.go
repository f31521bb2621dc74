package ginmw

import (
	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"

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
//	r.POST("/pay", ginmw.Bind(locks, "order:{OrderID}", pay))
//
//	func pay(c *gin.Context, req *PayRequest) { … }
//
// Path parameters are bound by the tag "uri", and then the rest as c.ShouldBind does: it takes the binding from the
// method and the Content-Type, and validates.
//
// The sources of key are the fields of T by their names in Go, {OrderID} or {Order.ID}: strings, integers, bools
// and types that implement [encoding.TextMarshaler]. They need no form. An empty string, 0 and false count as missing.
//
// What cannot be bound is answered with 400, and becomes the Problem's Err. Everything else is as with [Lock]. Bind panics
// on a key or an option that cannot work; [NewBind] returns an error instead.
func Bind[T any](l *core.Locker, key string, handler func(c *gin.Context, req *T), opts ...core.Option) gin.HandlerFunc {
	return rule.Must[gin.HandlerFunc]("ginmw")(NewBind(Config{Locker: l, Key: key, Options: opts}, handler))
}

// NewBind is [Bind] with all settings but a KeyFunc and MaxBody, which do not apply. Settings that cannot work
// are [core.ErrInvalid].
func NewBind[T any](c Config, handler func(c *gin.Context, req *T)) (gin.HandlerFunc, error) {
	var next func(*gin.Context, *T) error
	if handler != nil {
		next = func(c *gin.Context, req *T) error {
			handler(c, req)
			c.Next() // here, and not after the lock is released
			return nil
		}
	}
	l, err := newLock(c, rule.Fields[*request, T]())
	bound, err := settings.Bind(l, err, bind[T], next)
	return func(c *gin.Context) { _ = bound(c) }, err // no handler of gin returns an error
}

// bind validates at the end: gin's ShouldBindUri does at once, and finds what is in the body missing.
func bind[T any](c *gin.Context, req *T) error {
	params := make(map[string][]string)
	for _, p := range c.Params {
		params[p.Key] = []string{p.Value}
	}
	err := binding.MapFormWithTag(req, params, "uri")
	if err == nil {
		err = c.ShouldBind(req)
	}
	if err != nil {
		return httpmw.ProblemOf(adapter.Outcome{Reason: adapter.BadKey, Err: err})
	}
	return nil
}
