//go:build linux

package weather

import (
	"encoding/json"
	"net"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core/fence"
)

// write is what a worker sends to the store.
type write struct {
	Worker, Name, Lease string
	Fence               uint64
}

// serveStore is the process of the resource: one store that refuses older fences, and one
// that takes whatever comes, both told of every write.
func serveStore(dir string, listener net.Listener) error {
	log, err := newDiary(dir, "store")
	if err != nil {
		return err
	}
	var guard fence.Memory
	handle := func(w http.ResponseWriter, r *http.Request) {
		var in write
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		e := Event{Kind: Wrote, Worker: in.Worker, Name: in.Name, ID: in.Lease, Fence: in.Fence, Fenced: true}
		// The order of the history is the order of the writes.
		if guard.Do(in.Name, in.Fence, func() error { log.write(e); return nil }) != nil {
			e.Fenced = false
			log.write(e)
			w.WriteHeader(http.StatusConflict)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", handle)
	newMailbox().serve(mux)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	return s.Serve(listener)
}
