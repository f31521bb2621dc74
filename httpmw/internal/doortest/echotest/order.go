package echotest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/doortest"
)

func (v Version[C, H, M]) panics(t *testing.T) {
	for name, chain := range map[string]func(lock M) []M{
		"Outside": func(lock M) []M { return []M{v.Recover, lock} },
		"Inside":  func(lock M) []M { return []M{lock, v.Recover} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			e := v.orders(func(c C) error {
				if calls++; calls == 1 {
					panic("thrown")
				}
				return leaseName(c)
			}, chain(v.Lock(doortest.MemoryLocker(t), "order:{id|int}", core.WithDedup(time.Hour), core.WithDedupScope("pay")))...)
			for i, want := range []int{http.StatusInternalServerError, http.StatusOK, http.StatusConflict} {
				if status, body := order42(t, e); status != want {
					t.Errorf("request %d: %d %s, want %d", i, status, body, want)
				}
			}
		})
	}
}

func (v Version[C, H, M]) timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := doortest.MemoryLocker(t)
		e := v.Serve(App[C, H, M]{
			Use: []M{v.Timeout(20 * time.Millisecond)}, Routes: []string{pay},
			With: []M{v.Lock(locks, "order:{id|int}", core.WithWait(core.WaitForever))},
			Handler: func(c C) error {
				<-c.Request().Context().Done()
				if cause := context.Cause(c.Request().Context()); !errors.Is(cause, context.DeadlineExceeded) {
					t.Errorf("cause: %v", cause)
				}
				return c.Request().Context().Err()
			},
		})
		err := locks.Do(t.Context(), "order:42", func(context.Context) error {
			status, body := order42(t, e)
			if status != http.StatusConflict || !strings.Contains(body, httpmw.TypeHeld) {
				t.Errorf("held: answered %d %s", status, body)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if status, body := order42(t, e); status != http.StatusServiceUnavailable || strings.Contains(body, "holdfast") {
			t.Errorf("worked too long: answered %d %s, want Echo's 503", status, body)
		}
		if err := locks.Do(t.Context(), "order:42", func(context.Context) error { return nil }, core.WithWait(0)); err != nil {
			t.Errorf("not released: %v", err)
		}
	})
}

func (v Version[C, H, M]) strangers(t *testing.T) {
	store := &doortest.Backend{Store: memlock.New()}
	auth := v.BasicAuth(func(user, password string) bool { return user == "ann" && password == "right" })
	e := v.orders(leaseName[C], auth, v.Lock(doortest.NewLocker(t, store), "order:{id|int}"))
	store.Down.Store(true) // who reaches the lock gets 503
	for password, want := range map[string]int{"wrong": http.StatusUnauthorized, "right": http.StatusServiceUnavailable} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders/42", http.NoBody)
		r.SetBasicAuth("ann", password)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: answered %d, want %d", password, w.Code, want)
		}
	}
}

func (v Version[C, H, M]) compression(t *testing.T) {
	got := ask(t, v.Serve(App[C, H, M]{
		Use: []M{v.Gzip}, Routes: []string{"POST /plain"}, Handler: leaseName[C],
		With: []M{v.Lock(doortest.MemoryLocker(t), "{query:x|text}")},
	}), http.MethodPost, "/plain")
	if !got.uncompressed || got.status != http.StatusBadRequest || !strings.Contains(got.body, httpmw.TypeInvalidKey) {
		t.Errorf("compressed: %t, answered %d %s", got.uncompressed, got.status, got.body)
	}
}
