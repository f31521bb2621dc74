package httpmw_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// recoverer is what everybody writes for net/http, and chi has as middleware.Recoverer.
func recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func TestAPanicReleasesAndIsNotDoneOnEitherSideOfRecover(t *testing.T) {
	t.Parallel()
	for name, chain := range map[string]func(lock func(http.Handler) http.Handler, next http.Handler) http.Handler{
		"Outside": func(lock func(http.Handler) http.Handler, next http.Handler) http.Handler {
			return recoverer(lock(next))
		},
		"Inside": func(lock func(http.Handler) http.Handler, next http.Handler) http.Handler {
			return lock(recoverer(next))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			lock := httpmw.Lock(locktest.Memory(t), "order:{id|int}", core.WithDedup(time.Hour), core.WithDedupScope("pay"))
			mux := http.NewServeMux()
			mux.Handle("POST /orders/{id}", chain(lock, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if calls++; calls == 1 {
					panic("thrown")
				}
				leaseName(w, r)
			})))
			for i, want := range []int{http.StatusInternalServerError, http.StatusOK, http.StatusConflict} {
				if w := mwtest.Call(t, mux, http.MethodPost, "/orders/42"); w.Code != want {
					t.Errorf("request %d: %d %s, want %d", i, w.Code, w.Body, want)
				}
			}
		})
	}
}

// TimeoutHandler answers and goes, and leaves what stands inside running.
func TestInsideTheLockATimeoutHandlerFreesTheNameUnderTheWork(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	ended, checked, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	work := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer close(done)
		<-r.Context().Done()
		close(ended)
		<-checked
	})
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}", httpmw.Lock(locks, "order:{id|int}")(http.TimeoutHandler(work, 10*time.Millisecond, "")))
	if w := mwtest.Call(t, mux, http.MethodPost, "/orders/42"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("answered %d", w.Code)
	}
	<-ended
	if !locktest.IsFree(t, locks, "order:42") {
		t.Error("the order of package documentation need not be kept any more")
	}
	close(checked)
	<-done
}
