package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	echo4 "github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/echo5mw"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
)

// frameworks returns the same route behind each door.
func frameworks(locks *core.Locker, work func()) map[string]http.Handler {
	const key = "order:{id|int}"
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}", httpmw.Lock(locks, key)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		work()
		w.WriteHeader(http.StatusNoContent)
	})))
	four := echo4.New()
	four.POST("/orders/:id", func(c echo4.Context) error {
		work()
		return c.NoContent(http.StatusNoContent)
	}, echomw.Lock(locks, key))
	five := echo5.New()
	five.POST("/orders/:id", func(c *echo5.Context) error {
		work()
		return c.NoContent(http.StatusNoContent)
	}, echo5mw.Lock(locks, key))
	return map[string]http.Handler{"net/http": mux, "Echo v4": four, "Echo v5": five}
}

func TestDoorsOfAllFrameworksExcludeEachOther(t *testing.T) {
	t.Parallel()
	locks := mwtest.MemoryLocker(t)
	post := func(h http.Handler, path string) int {
		srv := httptest.NewServer(h)
		defer srv.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, http.NoBody)
		if err != nil {
			t.Error(err)
			return 0
		}
		res, err := srv.Client().Do(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	outside := frameworks(locks, func() {})
	for holder, h := range frameworks(locks, func() { entered <- struct{}{}; <-leave }) {
		held := make(chan int)
		go func() { held <- post(h, "/orders/42") }()
		<-entered
		for other, h := range outside {
			if got := post(h, "/orders/%34%32"); got != http.StatusConflict {
				t.Errorf("%s while %s works: %d, want 409", other, holder, got)
			}
			if got := post(h, "/orders/43"); got != http.StatusNoContent {
				t.Errorf("%s on another order: %d", other, got)
			}
		}
		leave <- struct{}{}
		if got := <-held; got != http.StatusNoContent {
			t.Errorf("%s: %d", holder, got)
		}
	}
}
