package fibermw_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/fibermw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2")) // it sleeps before it looks whether it is over
}

func TestTheTable(t *testing.T) {
	t.Parallel()
	locktest.Panics(t, "fibermw: ", func() { fibermw.Lock(locktest.Memory(t), "order:{nothing") })
	mwtest.Run(t, mwtest.Framework{
		Lock: mountLock, Bind: mountBind,
		Routes: []mwtest.Route{
			{Key: "file:{*1|text}", Route: "/files/*", Path: "/files/a/b", Status: http.StatusOK, Name: "file:a/b"},
			{Key: "order:{x|int}", Route: "/orders/:id", Path: "/orders/42", Status: http.StatusInternalServerError},
		},
	})
}

func config(s mwtest.Setup) fibermw.Config {
	c := mwtest.Config[fiber.Ctx, func(c fiber.Ctx, p *httpmw.Problem) error](s, asHTTP)
	if s.ErrorHandler != nil {
		c.ErrorHandler = func(c fiber.Ctx, p *httpmw.Problem) error {
			return record(c, func(w http.ResponseWriter, r *http.Request) { s.ErrorHandler(w, r, p) })
		}
	}
	return c
}

func mountLock(s mwtest.Setup) (http.Handler, error) {
	lock, err := fibermw.New(config(s))
	if err != nil {
		return nil, err
	}
	return bridge(s.Paths(":id"), lock, func(c fiber.Ctx) error {
		err := record(c, s.Handler)
		if s.Fails != nil {
			return s.Fails
		}
		return err
	}), nil
}

func mountBind(s mwtest.Setup) (http.Handler, error) {
	var handler func(fiber.Ctx, *mwtest.Pay) error
	if s.Bound != nil {
		handler = func(c fiber.Ctx, req *mwtest.Pay) error {
			return record(c, func(w http.ResponseWriter, r *http.Request) { s.Bound(w, r, req) })
		}
	}
	h, err := fibermw.NewBind(config(s), handler)
	if err != nil {
		return nil, err
	}
	return bridge([]string{"/orders/:id", "/pay"}, h), nil
}

// record has a handler of net/http answer. It finds the headers that are set.
func record(c fiber.Ctx, handler http.HandlerFunc) error {
	w, header := httptest.NewRecorder(), &c.Response().Header
	w.Code = 0
	copyHeader(w.Header(), header)
	found := w.Header().Clone()
	handler(w, asHTTP(c))
	for name := range found {
		if w.Header()[name] == nil {
			header.Del(name)
		}
	}
	for name, values := range w.Header() {
		if !slices.Equal(values, found[name]) {
			header.Del(name)
			addHeader(header, http.Header{name: values})
		}
	}
	if w.Code != 0 {
		c.Status(w.Code)
	}
	return c.Send(w.Body.Bytes())
}

func copyHeader(to http.Header, from *fasthttp.ResponseHeader) {
	for name, value := range from.All() {
		to.Add(string(name), string(value))
	}
}

// outside is the key of the context that a request for a Fiber comes with.
type outside struct{}

// bridge returns a handler that hands the bytes of each request to a Fiber, with the header of the answer as it is outside.
func bridge(paths []string, handlers ...any) http.Handler {
	app := fiber.New()
	before := func(c fiber.Ctx) error {
		ctx, _ := c.Locals(outside{}).(context.Context)
		c.SetContext(ctx)
		return c.Next()
	}
	for _, path := range paths {
		app.Add([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}, path, before, handlers...)
	}
	serve := app.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in fasthttp.RequestCtx
		in.Init(&fasthttp.Request{}, &net.TCPAddr{}, nil)
		in.SetUserValue(outside{}, r.Context())
		in.Request.Header.SetMethod(r.Method)
		in.Request.SetRequestURI(r.RequestURI)
		in.Request.Header.SetHost(r.Host)
		addHeader(&in.Request.Header, r.Header)
		addHeader(&in.Response.Header, w.Header())
		body, _ := io.ReadAll(r.Body)
		in.Request.SetBody(body)
		serve(&in)
		clear(w.Header())
		copyHeader(w.Header(), &in.Response.Header)
		w.WriteHeader(in.Response.StatusCode())
		_, _ = w.Write(in.Response.Body())
	})
}

func addHeader(to interface{ Add(name, value string) }, from http.Header) {
	for name, values := range from {
		for _, v := range values {
			to.Add(name, v)
		}
	}
}

// asHTTP is what mwtest's handlers read of a request.
func asHTTP(c fiber.Ctx) *http.Request {
	r, err := adaptor.ConvertRequest(c, false)
	if err != nil {
		panic(err)
	}
	return r.WithContext(c.Context())
}

func call(t *testing.T, app *fiber.App, target string) (status int, body string) {
	t.Helper()
	return send(t, app, httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, http.NoBody))
}

func send(t *testing.T, app *fiber.App, r *http.Request) (status int, body string) {
	t.Helper()
	res, err := app.Test(r)
	locktest.OK(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	locktest.OK(t, err)
	return res.StatusCode, string(text)
}

// overAConnection is send as clients do it: app.Test says that a body without a length is -1 bytes, which fasthttp refuses since 1.71.
func overAConnection(t *testing.T, app *fiber.App, r *http.Request) (status int, body string) {
	t.Helper()
	listener := fasthttputil.NewInmemoryListener()
	served := make(chan error, 1)
	go func() { served <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return listener.Dial() },
	}}
	r.RequestURI = ""
	r.URL.Scheme, r.URL.Host = "http", r.Host
	res, err := client.Do(r)
	locktest.OK(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	locktest.OK(t, err)
	locktest.OK(t, listener.Close())
	locktest.OK(t, <-served)
	return res.StatusCode, string(text)
}

func leaseName(c fiber.Ctx) error { return c.SendString(locktest.NameOf(c.Context())) }

func TestAHandlersErrorIsFibersAndNotDone(t *testing.T) {
	t.Parallel()
	for want, handler := range map[int]fiber.Handler{
		http.StatusTeapot: func(fiber.Ctx) error { return fiber.NewError(http.StatusTeapot, "short and stout") },
		http.StatusSwitchingProtocols: func(c fiber.Ctx) error { // what follows is served when the lock is released
			c.RequestCtx().Hijack(func(net.Conn) {})
			return c.SendStatus(http.StatusSwitchingProtocols)
		},
	} {
		app := fiber.New()
		app.Post("/orders/:id", fibermw.Lock(locktest.Memory(t), "order:{id|int}", core.WithDedup(time.Hour), core.WithDedupScope("pay")), handler)
		for range 2 {
			if status, body := call(t, app, "/orders/42"); status != want || want == http.StatusTeapot && body != "short and stout" {
				t.Errorf("%d %s", status, body)
			}
		}
	}
}

// The answer of the handlers is what they have made, and not the status that a handler before them has set.
func TestAStatusFromBeforeIsNoAnswer(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	app.Use(func(c fiber.Ctx) error { return c.Status(http.StatusAccepted).Next() })
	app.Post("/orders/:id", fibermw.Lock(locktest.Memory(t), "order:{id|int}", core.WithMaxHold(10*time.Millisecond)), func(c fiber.Ctx) error {
		<-c.Context().Done()
		return nil
	})
	if status, body := call(t, app, "/orders/42"); status != http.StatusServiceUnavailable || !strings.Contains(body, httpmw.TypeLost) {
		t.Errorf("%d %s", status, body)
	}
}

// unsized hides how long a reader is, so that it is sent in chunks.
type unsized struct{ io.Reader }

func TestAStreamedBodyIsLeftToTheHandlerUnlessTheKeyIsInIt(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	app := fiber.New(fiber.Config{StreamRequestBody: true})
	app.Use(func(c fiber.Ctx) error {
		c.RequestCtx().SetConnectionClose() // the server does not look for another request behind a body that it has not read
		return c.Next()
	})
	app.Post("/upload/:id", fibermw.Lock(locks, "order:{id|int}"), func(c fiber.Ctx) error {
		if !c.Request().IsBodyStream() {
			t.Error("somebody has read the stream")
		}
		n, err := io.Copy(io.Discard, c.Request().BodyStream())
		if err != nil {
			return err
		}
		return c.SendString(strconv.FormatInt(n, 10))
	})
	lock, err := fibermw.New(fibermw.Config{Locker: locks, Key: "order:{body:id}", MaxBody: 1000})
	locktest.OK(t, err)
	app.Post("/json", lock, func(c fiber.Ctx) error {
		if c.Request().BodyStream() != nil || string(c.Body()) != `{"id":42}` {
			t.Errorf("stream %v, body %q", c.Request().BodyStream(), c.Body())
		}
		return leaseName(c)
	})
	large := strings.Repeat(" ", 1<<20)
	for _, test := range []struct {
		target string
		body   io.Reader
		status int
		text   string
	}{
		{"/upload/42", strings.NewReader(large), 200, "1048576"},
		{"/upload/42", unsized{strings.NewReader(large)}, 200, "1048576"},
		{"/json", strings.NewReader(`{"id":42}`), 200, "order:42"},
		{"/json", strings.NewReader(`{"id":42}` + strings.Repeat(" ", 1000)), 413, httpmw.TypeTooLarge},
		{"/json", unsized{strings.NewReader(`{"id":42}`)}, 413, httpmw.TypeTooLarge},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, test.target, test.body)
		r.Header.Set("Content-Type", "application/json")
		if r.ContentLength < 0 {
			r.TransferEncoding = []string{"chunked"}
		}
		if status, text := overAConnection(t, app, r); status != test.status || !strings.Contains(text, test.text) {
			t.Errorf("%s: %d %s, want %d %s", test.target, status, text, test.status, test.text)
		}
	}
}

// Handlers read what c.Body makes of it, which can be another order than the bytes that were sent.
func TestABodyThatIsDecodedForTheHandlerNamesNothing(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	app.Post("/json", fibermw.Lock(locktest.Memory(t), "order:{body:id}"), func(c fiber.Ctx) error {
		if string(c.Body()) != `{"id":42}` {
			t.Errorf("it runs under the lock of order 42, and reads %q", c.Body())
		}
		return leaseName(c)
	})
	for encoding, status := range map[string]int{
		"": 200, "identity": 200, "Identity": 200, "br": 400, "GZIP": 400, "deflate": 400, "zstd": 400, "identity, br": 400, "unknown": 400,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/json", strings.NewReader(`{"id":42}`))
		r.Header.Set("Content-Type", "application/json")
		if encoding != "" {
			r.Header.Set("Content-Encoding", encoding)
		}
		if got, _ := send(t, app, r); got != status {
			t.Errorf("%q: %d, want %d", encoding, got, status)
		}
	}
}

// Fiber sends an answer when all handlers have returned, so the table's stands in place of what was there already.
func TestAnInnerLocksErrorIsAnsweredInPlaceOfABody(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	app.Post("/orders/:id", fibermw.Lock(locktest.Memory(t), "order:{id|int}"), func(c fiber.Ctx) error {
		_ = c.SendString("partial")
		return fmt.Errorf("%w: %w", fiber.ErrTooManyRequests, &core.HeldError{Name: "stock:secret"})
	})
	if status, body := call(t, app, "/orders/42"); status != http.StatusConflict || !strings.HasPrefix(body, `{"type":"`+httpmw.TypeHeld) {
		t.Errorf("%d %s", status, body)
	}
}

// Fiber reuses the memory of a request for the next one.
func TestANameOutlivesItsRequest(t *testing.T) {
	t.Parallel()
	lock, err := fibermw.New(fibermw.Config{
		Locker:  locktest.Memory(t),
		KeyFunc: func(c fiber.Ctx) (string, error) { return c.Params("id"), nil },
	})
	locktest.OK(t, err)
	app := fiber.New()
	var leases []*core.Lease
	app.Post("/:id", lock, func(c fiber.Ctx) error {
		x, _ := core.FromContext(c.Context())
		leases = append(leases, x)
		return nil
	})
	serve := app.Handler()
	var in fasthttp.RequestCtx
	in.Init(&fasthttp.Request{}, &net.TCPAddr{}, nil)
	for _, id := range []string{"aaaa", "bbbb"} {
		in.Request.Header.SetMethod(http.MethodPost)
		in.Request.SetRequestURI("/" + id)
		serve(&in)
	}
	if leases[0].Name() != "aaaa" || leases[1].Name() != "bbbb" {
		t.Errorf("%q, %q", leases[0].Name(), leases[1].Name())
	}
}
