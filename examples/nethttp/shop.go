package main

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/internal/httptour"
	"github.com/holdfast-go/holdfast/httpmw"
)

func newShop(locks *core.Locker) (http.Handler, error) {
	mux := http.NewServeMux()

	// One at a time for each order, on all machines. Whoever comes second gets 409 at once.
	mux.Handle("POST /orders/{id}/pay", httpmw.Lock(locks, "order:{id|int}")(work))

	// The same lock, so it excludes payments too. And an order ships once: after it has
	// succeeded, it gets 409 for a day.
	mux.Handle("POST /orders/{id}/ship", httpmw.Lock(locks, "order:{id|int}", core.WithDedup(24*time.Hour), core.WithDedupScope("ship"))(work))

	// The name is in the JSON body, and whoever comes second waits for up to 5 s.
	mux.Handle("PUT /stock", httpmw.Lock(locks, "stock:{body:sku}", core.WithWait(5*time.Second))(work))

	// Everything that can be chosen.
	lock, err := httpmw.New(httpmw.Config{
		Locker:  locks,
		Key:     "order:{id|int}",
		Skipper: func(r *http.Request) bool { return r.URL.Query().Get("force") == "yes" },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, p *httpmw.Problem) {
			http.Error(w, "not now: "+p.Title, p.Status)
		},
	})
	if err != nil {
		return nil, err
	}
	mux.Handle("DELETE /orders/{id}", lock(work))

	// Timeouts stand outside the locks: this one answers after 30 s, and the lock is held until
	// the handler has returned.
	return http.TimeoutHandler(mux, 30*time.Second, "too long"), nil
}

// work runs under the lock. The request's context ends when the lock is lost.
var work http.HandlerFunc = func(w http.ResponseWriter, r *http.Request) {
	if err := httptour.Work(r.Context()); err != nil {
		return // if the lock was lost, the door answers, since nothing was written
	}
	lease, _ := core.FromContext(r.Context())
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"did": r.Pattern, "fence": lease.Fence()})
}
