package ginmw

import (
	"fmt"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
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
	if handler == nil {
		return nil, fmt.Errorf("%w: Bind without a function", core.ErrInvalid)
	}
	l, err := newLock(c, rule.Fields[*request, T]())
	if err != nil {
		return nil, err
	}
	return func(c *gin.Context) {
		req := new(T)
		if err := bind(c, req); err != nil {
			_ = l.Answer(c, httpmw.ProblemOf(adapter.Outcome{Reason: adapter.BadKey, Err: err}))
			return
		}
		serve(l, c, req, func() {
			handler(c, req)
			c.Next() // here, and not after the lock is released
		})
	}, nil
}

// bind validates at the end: gin's ShouldBindUri does at once, and finds what is in the body missing.
func bind(c *gin.Context, req any) error {
	params := make(map[string][]string)
	for _, p := range c.Params {
		params[p.Key] = []string{p.Value}
	}
	if err := binding.MapFormWithTag(req, params, "uri"); err != nil {
		return err
	}
	return c.ShouldBind(req)
}
