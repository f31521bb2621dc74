package echotest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// On Echo.Use and on groups a lock sees requests that no route is for, and before the router (Echo.Pre) no request has one. It
// does not let them pass: who can make a request look like one of them would get by the lock.
func (v Version[C, H, M]) withoutARoute(t *testing.T) {
	const none = http.StatusInternalServerError
	locks := locktest.Memory(t)
	for _, c := range []struct {
		where, path      string
		byPath, byHeader int
	}{
		{"Pre", "/orders/42", none, http.StatusOK}, {"Pre", "/nothing", none, http.StatusNotFound},
		{"Use", "/orders/42", http.StatusOK, http.StatusOK}, {"Use", "/nothing", none, http.StatusNotFound},
		{"Group", "/api/orders/42", http.StatusOK, http.StatusOK}, {"Group", "/api/nothing", none, http.StatusNotFound},
	} {
		call := func(key string) int {
			app, lock := App[C, H, M]{Routes: []string{pay}, Handler: leaseName[C]}, []M{v.Lock(locks, key)}
			switch c.where {
			case "Pre":
				app.Pre = lock
			case "Use":
				app.Use = lock
			default:
				app.Group, app.With = "/api", lock
			}
			return mwtest.Call(t, v.Serve(app), http.MethodPost, c.path, "X-Tenant: acme").Code
		}
		byPath, byHeader := call("order:{id|int}"), call("tenant:{header:X-Tenant|text}")
		release := locktest.Hold(t, locks, "tenant:acme")
		held := call("tenant:{header:X-Tenant|text}")
		release()
		if v.Package == "echo5mw" && c.path == "/api/nothing" && byPath == http.StatusNotFound {
			continue // Echo v5 does not ask a group's middleware
		}
		if byPath != c.byPath || byHeader != c.byHeader || held != http.StatusConflict {
			t.Errorf("%s, %s: by its path %d, by a header %d, while that is held %d", c.where, c.path, byPath, byHeader, held)
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
