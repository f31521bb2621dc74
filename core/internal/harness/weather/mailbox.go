//go:build linux

package weather

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// letter is a hand-off on its way from one worker to whoever comes for it.
type letter struct {
	From    string // the lease that was detached
	Handoff string
	Copies  int           // how many get it; if none, the name is left for nobody
	After   time.Duration // how long it is on its way
}

// mailbox is where workers leave hand-offs for each other. It is in the process of the store:
// the giver may be killed as soon as it has been there.
type mailbox struct{ letters chan letter }

const mailPath = "/mail"

func newMailbox() *mailbox {
	const plenty = 1024
	return &mailbox{make(chan letter, plenty)}
}

func (m *mailbox) serve(mux *http.ServeMux) {
	mux.HandleFunc("POST "+mailPath, m.post)
	mux.HandleFunc("GET "+mailPath, m.collect)
}

func (m *mailbox) post(w http.ResponseWriter, r *http.Request) {
	var l letter
	if err := json.NewDecoder(r.Body).Decode(&l); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	time.AfterFunc(l.After, func() {
		for range l.Copies {
			m.letters <- l
		}
	})
}

// collect answers with a letter as soon as there is one, or after a while without.
func (m *mailbox) collect(w http.ResponseWriter, r *http.Request) {
	const patience = 250 * time.Millisecond
	select {
	case l := <-m.letters:
		_ = json.NewEncoder(w).Encode(l) // a letter may get lost
	case <-time.After(patience):
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done():
	}
}

// send posts a letter. If it gets lost, nobody comes for the name.
func (w *worker) send(l letter) {
	body, _ := json.Marshal(l) // of plain fields
	if reply := w.mail(context.Background(), http.MethodPost, bytes.NewReader(body)); reply != nil {
		_ = reply.Close()
	}
}

// letter waits a little for one.
func (w *worker) letter() (l letter, ok bool) {
	reply := w.mail(w.stop, http.MethodGet, nil)
	if reply == nil {
		return l, false
	}
	defer func() { _ = reply.Close() }()
	return l, json.NewDecoder(reply).Decode(&l) == nil
}

func (w *worker) mail(ctx context.Context, method string, body io.Reader) (reply io.ReadCloser) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+w.Store+mailPath, body)
	if err != nil {
		panic(err) // the address is the run's
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return nil
	}
	return resp.Body
}
