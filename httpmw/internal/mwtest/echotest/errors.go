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
	"github.com/holdfast-go/holdfast/internal/locktest"
)

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

// Echo writes the status of an error later, outside the middleware.
func (v Version[C, H, M]) errorIsNotDone(t *testing.T) {
	for _, own := range []error{errors.New("own"), v.HTTPError(http.StatusTeapot, "own"), v.HTTPError(http.StatusOK, "odd")} {
		calls := 0
		e := v.orders(func(c C) error {
			if calls++; calls == 1 {
				return own
			}
			return leaseName(c)
		}, v.Lock(locktest.Memory(t), "order:{id|int}", core.WithDedup(time.Hour), core.WithDedupScope("pay")))
		order42(t, e)
		for i, want := range []int{http.StatusOK, http.StatusConflict} {
			if status, body := order42(t, e); status != want {
				t.Errorf("%v, request %d after it: %d %s, want %d", own, i, status, body, want)
			}
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
	if p, ok := errors.AsType[*httpmw.Problem](err); v.Code(err) != http.StatusConflict || !ok || !errors.Is(p, core.ErrHeld) {
		t.Errorf("Echo got %v", err)
	}
}
