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
