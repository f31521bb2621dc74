// Package echotest is what the middleware of all versions of Echo has to do. To a compiler the versions
// are different types, so the tests are generic over those.
package echotest

import (
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// Context is what the context of every version can do.
type Context interface {
	Request() *http.Request
	QueryParam(name string) string
	String(code int, s string) error
	JSON(code int, v any) error
	NoContent(code int) error
}

// Config is that of every version.
type Config[C Context] = httpmw.Settings[C, func(c C, p *httpmw.Problem) error]

// App is an Echo. All its routes have the same handler and middleware.
type App[C Context, H ~func(C) error, M ~func(H) H] struct {
	Pre, Use []M
	Routes   []string // "POST /orders/:id"
	Handler  H
	With     []M
	OnError  func(C, error) // HTTPErrorHandler, nil for Echo's own
}

// Version is a version of Echo with its middleware: C is its context, H its HandlerFunc, M its
// MiddlewareFunc.
type Version[C Context, H ~func(C) error, M ~func(H) H] struct {
	Package    string
	Lock       func(l *core.Locker, key string, opts ...core.Option) M
	Middleware func(Config[C]) (M, error)
	NewBind    func(c Config[C], handler func(C, *mwtest.Pay) error) (H, error)
	Serve      func(App[C, H, M]) http.Handler

	Response  func(C) http.ResponseWriter
	Writer    func(C) http.ResponseWriter // what Echo's own Response writes to
	SetWriter func(C, http.ResponseWriter)
	HTTPError func(code int, message string) error

	Wrap func(func(http.Handler) http.Handler) M // WrapMiddleware
}

// Run runs the table, and what is Echo's alone.
func (v Version[C, H, M]) Run(t *testing.T) {
	t.Helper()
	locktest.Panics(t, v.Package+": ", func() { v.Lock(locktest.Memory(t), "order:{nothing") })
	mwtest.Run(t, mwtest.Framework{
		Lock: v.mountLock, Bind: v.mountBind, Streams: true,
		Routes: []mwtest.Route{
			{Key: "file:{*|text}", Route: "/files/*", Path: "/files/a/b", Status: http.StatusOK, Name: "file:a/b"},
			{Key: "file:{*|text}", Route: "/files/*", Path: "/files/a%2Fb/%63", Status: http.StatusOK, Name: "file:a/b/c"},
			{Key: "file:{*|text}", Route: "/files/*", Path: "/files/", Status: http.StatusBadRequest},
			{Key: "order:{i|int}", Route: "/orders/:id", Path: "/orders/42", Status: http.StatusInternalServerError},
			{Key: "order:{id|int}", Route: "/orders/:id/items", Path: "/orders//items", Status: http.StatusBadRequest},
			{Key: "order:{id|text}", Route: "/orders/:id", Path: "/orders/%2534%41", Status: http.StatusBadRequest}, // a handler may read "%34A", or unescape it
			{Key: "order:{id|text}", Route: "/orders/:id", Path: "/orders/%2541", Status: http.StatusBadRequest},
			{Key: "order:{id|text}", Route: "/orders/:id", Path: "/orders/100%25", Status: http.StatusOK, Name: "order:100%25"},
			{Key: "order:{id|text}", Route: "/orders/:id", Path: "/orders/%41", Status: http.StatusOK, Name: "order:A"},
		},
	})
	for name, test := range map[string]func(*testing.T){
		"RequestsWithoutARouteDoNotPass":                v.withoutARoute,
		"AHandlersErrorIsItsOwn":                        v.errorIsItsOwn,
		"ALossBehindWrappedMiddlewareIsAnswered":        v.lossBehindWrapped,
		"ACustomErrorHandlerSeesARefusalAndAddsNothing": v.customErrorHandler,
		"WhatStandsOutsideGetsItsOwnRequestBack":        v.outsideGetsItsOwnBack,
		"AnInnerWriterStays":                            v.innerWriterStays,
		"AQueryIsWhatEchoHasMadeOfIt":                   v.queryIsWhatEchoHasMadeOfIt,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func (v Version[C, H, M]) config(s mwtest.Setup) Config[C] {
	c := mwtest.Config[C, func(c C, p *httpmw.Problem) error](s, C.Request)
	if s.ErrorHandler != nil {
		c.ErrorHandler = func(c C, p *httpmw.Problem) error {
			s.ErrorHandler(v.Response(c), c.Request(), p)
			return nil
		}
	}
	return c
}

func (v Version[C, H, M]) mountLock(s mwtest.Setup) (http.Handler, error) {
	mw, err := v.Middleware(v.config(s))
	if err != nil {
		return nil, err
	}
	app := App[C, H, M]{With: []M{mw}, Handler: func(c C) error {
		s.Handler(v.Response(c), c.Request())
		return s.Fails
	}}
	for _, path := range s.Paths(":id") {
		app.Routes = append(app.Routes, "GET "+path, "POST "+path, "PUT "+path)
	}
	return v.Serve(app), nil
}

func (v Version[C, H, M]) mountBind(s mwtest.Setup) (http.Handler, error) {
	var handler func(c C, req *mwtest.Pay) error
	if s.Bound != nil {
		handler = func(c C, req *mwtest.Pay) error {
			s.Bound(v.Response(c), c.Request(), req)
			return nil
		}
	}
	h, err := v.NewBind(v.config(s), handler)
	if err != nil {
		return nil, err
	}
	app := App[C, H, M]{Handler: h}
	for _, method := range []string{"GET ", "POST ", "PUT ", "DELETE "} {
		app.Routes = append(app.Routes, method+"/orders/:id", method+"/pay")
	}
	return v.Serve(app), nil
}

const pay = "POST /orders/:id"

// orders serves one route.
func (v Version[C, H, M]) orders(handler H, with ...M) http.Handler {
	return v.Serve(App[C, H, M]{Routes: []string{pay}, Handler: handler, With: with})
}

// order42 asks for that route.
func order42(t *testing.T, h http.Handler) (status int, body string) {
	t.Helper()
	w := mwtest.Call(t, h, http.MethodPost, "/orders/42")
	return w.Code, w.Body.String()
}

// leaseName answers with the name of the lease.
func leaseName[C Context](c C) error {
	return c.String(http.StatusOK, locktest.NameOf(c.Request().Context()))
}
