// Package echotest is what the middleware of all versions of Echo has to do. To a compiler the versions
// are different types, so the tests are generic over those.
package echotest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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

// On Echo.Use and on groups a lock sees requests that no route is for, and before the router (Echo.Pre) no request has one. It
// does not let them pass: who can make a request look like one of them would get by the lock.
func (v Version[C, H, M]) withoutARoute(t *testing.T) {
	locks := locktest.Memory(t)
	locktest.Hold(t, locks, "tenant:acme")
	for key, want := range map[string]int{"order:{id|int}": http.StatusInternalServerError, "tenant:{header:X-Tenant|text}": http.StatusConflict} {
		lock := []M{v.Lock(locks, key)}
		for path, app := range map[string]App[C, H, M]{"/orders/42": {Pre: lock}, "/nothing": {Use: lock}} {
			app.Routes, app.Handler = []string{pay}, leaseName[C]
			if w := mwtest.Call(t, v.Serve(app), http.MethodPost, path, "X-Tenant: acme"); w.Code != want {
				t.Errorf("%s of %s: %d %s", key, path, w.Code, w.Body)
			}
		}
	}
}

func passes(next http.Handler) http.Handler { return next }

func (v Version[C, H, M]) outsideGetsItsOwnBack(t *testing.T) {
	for name, handler := range map[string]H{
		"Returns": leaseName[C],
		"Wrapped": v.Wrap(passes)(leaseName[C]),
		"Panics":  func(C) error { panic("thrown") },
	} {
		outside := func(next H) H {
			return func(c C) error {
				r, response, writer := c.Request(), v.Response(c), v.Writer(c)
				defer func() {
					_ = recover()
					if c.Request() != r || v.Response(c) != response || v.Writer(c) != writer {
						t.Errorf("%s: not restored", name)
					}
					if err := c.Request().Context().Err(); err != nil {
						t.Errorf("%s: the context outside: %v", name, err)
					}
				}()
				return next(c)
			}
		}
		order42(t, v.Serve(App[C, H, M]{
			Use: []M{outside}, Routes: []string{pay}, Handler: handler,
			With: []M{v.Lock(locktest.Memory(t), "order:{id|int}")},
		}))
	}
}

func (v Version[C, H, M]) innerWriterStays(t *testing.T) {
	var mine struct{ http.ResponseWriter }
	order42(t, v.orders(func(c C) error {
		mine.ResponseWriter = v.Writer(c)
		v.SetWriter(c, &mine)
		return nil
	}, func(next H) H {
		return func(c C) error {
			err := next(c)
			if v.Writer(c) != &mine {
				t.Error("the writer that a handler has put in was taken out")
			}
			return err
		}
	}, v.Lock(locktest.Memory(t), "order:{id|int}")))
}

// echo.WrapMiddleware replaces the response and does not put it back.
func (v Version[C, H, M]) lossBehindWrapped(t *testing.T) {
	wait := func(c C) error {
		<-c.Request().Context().Done()
		return nil
	}
	status, body := order42(t, v.orders(wait, v.Lock(locktest.Memory(t), "order:{id|int}", core.WithMaxHold(10*time.Millisecond)), v.Wrap(passes)))
	if status != http.StatusServiceUnavailable || !strings.Contains(body, httpmw.TypeLost) {
		t.Errorf("answered %d %s", status, body)
	}
}

// Some versions of echo parse the query once, so what middleware outside does to the URL later is not what handlers read.
func (v Version[C, H, M]) queryIsWhatEchoHasMadeOfIt(t *testing.T) {
	rewrite := func(next H) H {
		return func(c C) error {
			_ = c.QueryParam("id")
			c.Request().URL.RawQuery = "id=43"
			return next(c)
		}
	}
	read := ""
	handler := func(c C) error {
		read = c.QueryParam("id")
		return leaseName(c)
	}
	w := mwtest.Call(t, v.orders(handler, rewrite, v.Lock(locktest.Memory(t), "order:{query:id|int}")), http.MethodPost, "/orders/1?id=42")
	if read == "" || w.Body.String() != "order:"+read {
		t.Errorf("%d %s, and the handler reads %q", w.Code, w.Body, read)
	}
}

// Echo gets the very error. What has begun to be written stays what the client gets, also beside an error of core.
func (v Version[C, H, M]) errorIsItsOwn(t *testing.T) {
	locks := locktest.Memory(t)
	held := &core.HeldError{Name: "stock:7"}
	for _, test := range []struct {
		own   error
		wrote string
	}{
		{v.HTTPError(http.StatusTeapot, "own"), ""}, {fmt.Errorf("own: %w", v.HTTPError(http.StatusTeapot, "own")), ""}, {errors.New("own"), ""},
		{errors.Join(v.HTTPError(http.StatusTeapot, "own"), held), ""}, {core.ErrReleased, ""}, {context.Canceled, ""}, {held, "partial"},
	} {
		var seen error
		status, body := order42(t, v.Serve(App[C, H, M]{
			Routes: []string{pay}, With: []M{v.Lock(locks, "order:{id|int}")},
			Handler: func(c C) error {
				if test.wrote != "" {
					_ = c.String(http.StatusTeapot, test.wrote)
				}
				return test.own
			},
			OnError: func(c C, err error) {
				seen = err
				if test.wrote == "" {
					_ = c.NoContent(http.StatusTeapot)
				}
			},
		}))
		if status != http.StatusTeapot || body != test.wrote {
			t.Errorf("%v: answered %d %s", test.own, status, body)
		}
		if seen != test.own { //nolint:errorlint // the very same
			t.Errorf("Echo got %v, want %v as it is", seen, test.own)
		}
	}
}

// Through a server: the declared length is what keeps a second body away.
func (v Version[C, H, M]) customErrorHandler(t *testing.T) {
	seen := make(chan error, 1)
	locks := locktest.Memory(t)
	locktest.Hold(t, locks, "order:42")
	srv := httptest.NewServer(v.Serve(App[C, H, M]{
		Routes: []string{pay}, With: []M{v.Lock(locks, "order:{id|int}")},
		Handler: leaseName[C],
		OnError: func(c C, err error) {
			seen <- err
			_ = c.JSON(http.StatusInternalServerError, err.Error()) // does not look at Committed
		},
	}))
	defer srv.Close()
	res, err := srv.Client().Post(srv.URL+"/orders/42", "", http.NoBody)
	locktest.OK(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusConflict || !strings.HasSuffix(string(body), `not started."}`) {
		t.Errorf("answered %d %s (%v)", res.StatusCode, body, err)
	}
	err = <-seen
	if p, ok := errors.AsType[*httpmw.Problem](err); !ok || !errors.Is(p, core.ErrHeld) || !strings.Contains(err.Error(), "code=409") {
		t.Errorf("Echo got %v", err)
	}
}
