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
)

// The keys of the routes. Each is named by its route.
const (
	keyOfInt    = "order:{id|int}"
	keyOfText   = "order:{id|text}"
	keyOfQuery  = "order:{query:id|text}"
	keyOfHeader = "order:{header:X-Order|text}"
	keyOfBody   = "order:{body:id}"
	keyOfBound  = "order:{OrderID}:{Account}"
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
	lock   string   // the name that is locked, "" if none is
	raw    string   // a path parameter as the framework gives it
	values []string // what the handler reads, as the documentation of the framework's adapter says
}

func (s *seen) note(ctx context.Context, raw string, values ...string) {
	s.ran, s.raw, s.values = true, raw, values
	if x, ok := core.FromContext(ctx); ok {
		s.lock = x.Name()
	}
}

// framework serves a request, as bytes.
type framework func(raw []byte) seen

// plain is a path parameter as Echo's documentation has it: as it was sent where the URL has a RawPath.
func plain(u *url.URL, v string) string {
	if unescaped, err := url.PathUnescape(v); err == nil && u.RawPath != "" {
		return unescaped
	}
	return v
}

func overnetHTTP(h http.Handler, last *seen) framework {
	return func(raw []byte) seen {
		*last = seen{}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return seen{}
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		return *last
	}
}

func onNetHTTP(locks *core.Locker) framework {
	var last seen
	mux := http.NewServeMux()
	lock := func(pattern, key string, read func(r *http.Request) (string, string)) {
		mux.Handle(pattern, httpmw.Lock(locks, key)(override(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			raw, value := read(r)
			last.note(r.Context(), raw, value)
		}))))
	}
	param := func(r *http.Request) (string, string) { return r.PathValue("id"), r.PathValue("id") }
	lock("/int/{id}", keyOfInt, param)
	lock("/text/{id}", keyOfText, param)
	lock("/query", keyOfQuery, func(r *http.Request) (string, string) { return "", r.URL.Query().Get("id") })
	lock("/header", keyOfHeader, func(r *http.Request) (string, string) { return "", r.Header.Get("X-Order") })
	lock("/body", keyOfBody, func(r *http.Request) (string, string) {
		var d doc
		_ = json.NewDecoder(r.Body).Decode(&d)
		return "", string(d.ID)
	})
	bound := httpmw.Bind(locks, keyOfBound, httpmw.JSON[pay], func(_ http.ResponseWriter, r *http.Request, req *pay) { last.note(r.Context(), "", req.values()...) })
	mux.Handle("/bound", bound)
	mux.Handle("/bound/{id}", bound)
	return overnetHTTP(mux, &last)
}

// override is what Echo's MethodOverride does.
func override(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m := r.Header.Get("X-HTTP-Method-Override"); m != "" && r.Method == http.MethodPost {
			r.Method = m
		}
		next.ServeHTTP(w, r)
	})
}

func onEcho4(locks *core.Locker) framework {
	var last seen
	e := echo4.New()
	e.Use(middleware4.MethodOverride())
	lock := func(path, key string, read func(c echo4.Context) (string, string)) {
		e.Any(path, func(c echo4.Context) error {
			raw, value := read(c)
			last.note(c.Request().Context(), raw, value)
			return nil
		}, echomw.Lock(locks, key))
	}
	param := func(c echo4.Context) (string, string) { return c.Param("id"), plain(c.Request().URL, c.Param("id")) }
	lock("/int/:id", keyOfInt, param)
	lock("/text/:id", keyOfText, param)
	lock("/query", keyOfQuery, func(c echo4.Context) (string, string) { return "", c.QueryParam("id") })
	lock("/header", keyOfHeader, func(c echo4.Context) (string, string) { return "", c.Request().Header.Get("X-Order") })
	lock("/body", keyOfBody, func(c echo4.Context) (string, string) {
		var d doc
		_ = new(echo4.DefaultBinder).BindBody(c, &d)
		return "", string(d.ID)
	})
	bound := echomw.Bind(locks, keyOfBound, func(c echo4.Context, req *pay) error {
		last.note(c.Request().Context(), "", req.values()...)
		return nil
	})
	e.Any("/bound", bound)
	e.Any("/bound/:id", bound)
	return overnetHTTP(e, &last)
}

func onEcho5(locks *core.Locker) framework {
	var last seen
	e := echo5.New()
	e.Use(middleware5.MethodOverride())
	lock := func(path, key string, read func(c *echo5.Context) (string, string)) {
		e.Any(path, func(c *echo5.Context) error {
			raw, value := read(c)
			last.note(c.Request().Context(), raw, value)
			return nil
		}, echo5mw.Lock(locks, key))
	}
	param := func(c *echo5.Context) (string, string) { return c.Param("id"), plain(c.Request().URL, c.Param("id")) }
	lock("/int/:id", keyOfInt, param)
	lock("/text/:id", keyOfText, param)
	lock("/query", keyOfQuery, func(c *echo5.Context) (string, string) { return "", c.QueryParam("id") })
	lock("/header", keyOfHeader, func(c *echo5.Context) (string, string) { return "", c.Request().Header.Get("X-Order") })
	lock("/body", keyOfBody, func(c *echo5.Context) (string, string) {
		var d doc
		_ = echo5.BindBody(c, &d)
		return "", string(d.ID)
	})
	bound := echo5mw.Bind(locks, keyOfBound, func(c *echo5.Context, req *pay) error {
		last.note(c.Request().Context(), "", req.values()...)
		return nil
	})
	e.Any("/bound", bound)
	e.Any("/bound/:id", bound)
	return overnetHTTP(e, &last)
}

func onGin(locks *core.Locker) framework {
	var last seen
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	lock := func(path, key string, read func(c *gin.Context) (string, string)) {
		g.Any(path, ginmw.Lock(locks, key), func(c *gin.Context) {
			raw, value := read(c)
			last.note(c.Request.Context(), raw, value)
		})
	}
	param := func(c *gin.Context) (string, string) { return c.Param("id"), c.Param("id") }
	lock("/int/:id", keyOfInt, param)
	lock("/text/:id", keyOfText, param)
	lock("/query", keyOfQuery, func(c *gin.Context) (string, string) { return "", c.Query("id") })
	lock("/header", keyOfHeader, func(c *gin.Context) (string, string) { return "", c.GetHeader("X-Order") })
	lock("/body", keyOfBody, func(c *gin.Context) (string, string) {
		var d doc
		_ = c.ShouldBindJSON(&d)
		return "", string(d.ID)
	})
	bound := ginmw.Bind(locks, keyOfBound, func(c *gin.Context, req *pay) { last.note(c.Request.Context(), "", req.values()...) })
	g.Any("/bound", bound)
	g.Any("/bound/:id", bound)
	return overnetHTTP(g, &last)
}

func onFiber(locks *core.Locker) framework {
	var last seen
	app := fiber.New()
	lock := func(path, key string, read func(c fiber.Ctx) (string, string)) {
		app.All(path, fibermw.Lock(locks, key), func(c fiber.Ctx) error {
			raw, value := read(c)
			last.note(c.Context(), raw, value)
			return nil
		})
	}
	param := func(c fiber.Ctx) (string, string) {
		v := c.Params("id")
		if unescaped, err := url.PathUnescape(v); err == nil {
			return v, unescaped
		}
		return v, v
	}
	lock("/int/:id", keyOfInt, param)
	lock("/text/:id", keyOfText, param)
	lock("/query", keyOfQuery, func(c fiber.Ctx) (string, string) { return "", c.Query("id") })
	lock("/header", keyOfHeader, func(c fiber.Ctx) (string, string) { return "", c.Get("X-Order") })
	lock("/body", keyOfBody, func(c fiber.Ctx) (string, string) {
		var d doc
		_ = c.Bind().Body(&d)
		return "", string(d.ID)
	})
	bound := fibermw.Bind(locks, keyOfBound, func(c fiber.Ctx, req *pay) error {
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
			return seen{}
		}
		serve(&in)
		last.raw = string([]byte(last.raw)) // a copy: Fiber reuses the memory
		for i, v := range last.values {
			last.values[i] = string([]byte(v))
		}
		return last
	}
}
