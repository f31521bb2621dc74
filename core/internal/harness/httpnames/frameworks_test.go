package httpnames_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v3"
	echo4 "github.com/labstack/echo/v4"
	middleware4 "github.com/labstack/echo/v4/middleware"
	echo5 "github.com/labstack/echo/v5"
	middleware5 "github.com/labstack/echo/v5/middleware"
	"github.com/valyala/fasthttp"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/echo5mw"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
	"github.com/holdfast-go/holdfast/httpmw/fibermw"
	"github.com/holdfast-go/holdfast/httpmw/ginmw"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// pay is what is bound.
type pay struct {
	OrderID int64  `param:"id" uri:"id" query:"id" form:"id" json:"id" xml:"id"`
	Account string `query:"account" form:"account" json:"account" xml:"account"`
}

func (p *pay) values() []string { return []string{strconv.FormatInt(p.OrderID, 10), p.Account} }

// doc is what a handler decodes a JSON body to.
type doc struct {
	ID id `json:"id"`
}

// id is a string, or a number that is an integer, as a handler would read it.
type id string

func (i *id) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, (*string)(i))
	}
	n, ok := new(big.Rat).SetString(string(raw))
	if ok && n.IsInt() {
		*i = id(n.Num().String())
	}
	return nil
}

// seen is what a handler has seen of one request.
type seen struct {
	ran    bool
	lock   string   // the name that is locked
	raw    string   // a path parameter as the framework gives it
	values []string // what the handler reads, as the documentation of the framework's adapter says
	status int      // of the answer
}

func (s *seen) note(ctx context.Context, raw string, values ...string) {
	s.ran, s.raw, s.values, s.lock = true, raw, values, locktest.NameOf(ctx)
}

// framework serves a request, as bytes.
type framework func(raw []byte) seen

// readers are how the handlers of a framework, which get a C, read what a request says.
type readers[C any] struct {
	context       func(C) context.Context
	param         func(C) (raw, value string)
	query, header func(C) string
	body          func(C, *doc)
}

// mount has the routes of a framework, each locked by its own key.
func (r readers[C]) mount(last *seen, handle func(path, key string, handler func(C))) {
	for path, read := range map[string]func(C) (raw, value string){
		"/int/:id": r.param, "/text/:id": r.param,
		"/query":  func(c C) (string, string) { return "", r.query(c) },
		"/header": func(c C) (string, string) { return "", r.header(c) },
		"/body": func(c C) (string, string) {
			var d doc
			r.body(c, &d)
			return "", string(d.ID)
		},
	} {
		handle(path, templates[strings.Split(path, "/")[1]], func(c C) {
			raw, value := read(c)
			last.note(r.context(c), raw, value)
		})
	}
}

// plain is a path parameter as Echo's documentation has it: as it was sent where the URL has a RawPath.
func plain(u *url.URL, v string) string {
	if unescaped, err := url.PathUnescape(v); err == nil && u.RawPath != "" {
		return unescaped
	}
	return v
}

func overNetHTTP(h http.Handler, last *seen) framework {
	return func(raw []byte) seen {
		*last = seen{}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return seen{status: http.StatusBadRequest}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		last.status = w.Code
		return *last
	}
}

func onNetHTTP(locks *core.Locker) framework {
	var last seen
	mux := http.NewServeMux()
	readers[*http.Request]{
		context: (*http.Request).Context,
		param:   func(r *http.Request) (string, string) { return r.PathValue("id"), r.PathValue("id") },
		query:   func(r *http.Request) string { return r.URL.Query().Get("id") },
		header:  func(r *http.Request) string { return r.Header.Get("X-Order") },
		body:    func(r *http.Request, d *doc) { _ = json.NewDecoder(r.Body).Decode(d) },
	}.mount(&last, func(path, key string, handler func(*http.Request)) {
		h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { handler(r) })
		mux.Handle(strings.Replace(path, ":id", "{id}", 1), httpmw.Lock(locks, key)(h))
	})
	bound := httpmw.Bind(locks, templates["bound"], httpmw.JSON[pay], func(_ http.ResponseWriter, r *http.Request, req *pay) { last.note(r.Context(), "", req.values()...) })
	mux.Handle("/bound", bound)
	mux.Handle("/bound/{id}", bound)
	return overNetHTTP(mux, &last)
}

// echoContext is what the contexts of both versions of Echo can do.
type echoContext interface {
	Request() *http.Request
	Param(name string) string
	QueryParam(name string) string
}

func onEcho[C echoContext](body func(C, *doc)) readers[C] {
	return readers[C]{
		context: func(c C) context.Context { return c.Request().Context() },
		param:   func(c C) (string, string) { return c.Param("id"), plain(c.Request().URL, c.Param("id")) },
		query:   func(c C) string { return c.QueryParam("id") },
		header:  func(c C) string { return c.Request().Header.Get("X-Order") },
		body:    body,
	}
}

func onEcho4(locks *core.Locker) framework {
	var last seen
	e := echo4.New()
	e.Use(middleware4.MethodOverride())
	onEcho(func(c echo4.Context, d *doc) { _ = new(echo4.DefaultBinder).BindBody(c, d) }).mount(&last, func(path, key string, handler func(echo4.Context)) {
		e.Any(path, func(c echo4.Context) error {
			handler(c)
			return nil
		}, echomw.Lock(locks, key))
	})
	bound := echomw.Bind(locks, templates["bound"], func(c echo4.Context, req *pay) error {
		last.note(c.Request().Context(), "", req.values()...)
		return nil
	})
	e.Any("/bound", bound)
	e.Any("/bound/:id", bound)
	return overNetHTTP(e, &last)
}

func onEcho5(locks *core.Locker) framework {
	var last seen
	e := echo5.New()
	e.Use(middleware5.MethodOverride())
	onEcho(func(c *echo5.Context, d *doc) { _ = echo5.BindBody(c, d) }).mount(&last, func(path, key string, handler func(*echo5.Context)) {
		e.Any(path, func(c *echo5.Context) error {
			handler(c)
			return nil
		}, echo5mw.Lock(locks, key))
	})
	bound := echo5mw.Bind(locks, templates["bound"], func(c *echo5.Context, req *pay) error {
		last.note(c.Request().Context(), "", req.values()...)
		return nil
	})
	e.Any("/bound", bound)
	e.Any("/bound/:id", bound)
	return overNetHTTP(e, &last)
}

func onGin(locks *core.Locker) framework {
	var last seen
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	readers[*gin.Context]{
		context: func(c *gin.Context) context.Context { return c.Request.Context() },
		param:   func(c *gin.Context) (string, string) { return c.Param("id"), c.Param("id") },
		query:   func(c *gin.Context) string { return c.Query("id") },
		header:  func(c *gin.Context) string { return c.GetHeader("X-Order") },
		body:    func(c *gin.Context, d *doc) { _ = c.ShouldBindJSON(d) },
	}.mount(&last, func(path, key string, handler func(*gin.Context)) { g.Any(path, ginmw.Lock(locks, key), handler) })
	bound := ginmw.Bind(locks, templates["bound"], func(c *gin.Context, req *pay) { last.note(c.Request.Context(), "", req.values()...) })
	g.Any("/bound", bound)
	g.Any("/bound/:id", bound)
	return overNetHTTP(g, &last)
}

func onFiber(locks *core.Locker) framework {
	var last seen
	app := fiber.New()
	readers[fiber.Ctx]{
		context: func(c fiber.Ctx) context.Context { return c.Context() },
		param: func(c fiber.Ctx) (string, string) {
			v := c.Params("id")
			if unescaped, err := url.PathUnescape(v); err == nil {
				return v, unescaped
			}
			return v, v
		},
		query:  func(c fiber.Ctx) string { return c.Query("id") },
		header: func(c fiber.Ctx) string { return c.Get("X-Order") },
		body:   func(c fiber.Ctx, d *doc) { _ = c.Bind().Body(d) },
	}.mount(&last, func(path, key string, handler func(fiber.Ctx)) {
		app.All(path, fibermw.Lock(locks, key), func(c fiber.Ctx) error {
			handler(c)
			return nil
		})
	})
	bound := fibermw.Bind(locks, templates["bound"], func(c fiber.Ctx, req *pay) error {
		last.note(c.Context(), "", req.values()...)
		return nil
	})
	app.All("/bound", bound)
	app.All("/bound/:id", bound)
	serve := app.Handler()
	return func(raw []byte) seen {
		last = seen{}
		var in fasthttp.RequestCtx
		in.Init(&fasthttp.Request{}, &net.TCPAddr{}, nil)
		if err := in.Request.Read(bufio.NewReader(bytes.NewReader(raw))); err != nil {
			return seen{status: http.StatusBadRequest}
		}
		serve(&in)
		last.status = in.Response.StatusCode()
		last.raw = strings.Clone(last.raw) // Fiber reuses the memory
		for i, v := range last.values {
			last.values[i] = strings.Clone(v)
		}
		return last
	}
}
