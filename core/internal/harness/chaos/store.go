//go:build linux

package chaos

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// write is what a worker sends to the store.
type write struct {
	Worker, Name, Lease string
	Fence               uint64
}

// letter is a hand-off on its way from one worker to whoever comes for it.
type letter struct {
	From    string // the lease that was detached
	Handoff string
	Copies  int           // how many get it; if none, the name is left for nobody
	After   time.Duration // how long it is on its way
}

const mailPath = "/mail"

// serveStore is the resource, in the run's own process: one store that refuses older fences, and one that takes whatever comes, both
// told of every write. Workers leave hand-offs for each other there too: the giver may be killed as soon as it has been there.
func (r *run) serveStore() {
	log, err := newDiary(r.dir, "store")
	backendtest.OK(r.tb, err)
	var guard fence.Memory
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, req *http.Request) {
		var in write
		if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if slices.Contains(sharedNames, in.Name) {
			r.last.Store(in.Worker)
		}
		e := Event{Kind: Wrote, Worker: in.Worker, Name: in.Name, ID: in.Lease, Fence: in.Fence, Fenced: true}
		// The order of the history is the order of the writes.
		if guard.Do(in.Name, in.Fence, func() error { log.write(e); return nil }) != nil {
			e.Fenced = false
			log.write(e)
			w.WriteHeader(http.StatusConflict)
		}
	})
	letters := make(chan letter, 1024)
	mux.HandleFunc("POST "+mailPath, func(w http.ResponseWriter, req *http.Request) {
		var l letter
		if err := json.NewDecoder(req.Body).Decode(&l); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		time.AfterFunc(l.After, func() {
			for range l.Copies {
				letters <- l
			}
		})
	})
	mux.HandleFunc("GET "+mailPath, func(w http.ResponseWriter, req *http.Request) { // as soon as there is a letter, or after a while without
		const patience = 250 * time.Millisecond
		select {
		case l := <-letters:
			_ = json.NewEncoder(w).Encode(l) // it may get lost
		case <-time.After(patience):
			w.WriteHeader(http.StatusNoContent)
		case <-req.Context().Done():
		}
	})
	s := httptest.NewServer(mux)
	r.tb.Cleanup(s.Close)
	r.store = s.Listener.Addr().String()
}
