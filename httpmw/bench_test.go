package httpmw_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
)

// BenchmarkLock shows what the middleware costs beyond the lock: "bare" calls core.Locker.Do with
// a fixed name around the same handler, behind the same mux. "unlabelled" is the middleware without its label: it is made
// once for each route.
func BenchmarkLock(b *testing.B) {
	locks := mwtest.MemoryLocker(b)
	bare, err := locks.With(core.WithWait(0))
	if err != nil {
		b.Fatal(err)
	}
	var handler http.HandlerFunc = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	for name, h := range map[string]http.Handler{
		"lock":       httpmw.Lock(locks, "order:{id|int}")(handler),
		"unlabelled": httpmw.Lock(locks, "order:{id|int}", core.WithLabel(""))(handler),
		"bare": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = bare.Do(r.Context(), "order:42", func(context.Context) error {
				handler(w, r)
				return nil
			})
		}),
	} {
		b.Run(name, func(b *testing.B) {
			mux := http.NewServeMux()
			mux.Handle("POST /orders/{id}", h)
			mwtest.Bench(b, mux)
		})
	}
}
