package inspector

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// heartbeat keeps proxies from ending a stream in which nothing happens.
const heartbeat = 15 * time.Second

// events is the stream of what is now, for a browser's EventSource.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return // else the next request on the connection waits for ever
	}
	header.Set("X-Accel-Buffering", "no")                   // nginx passes it on at once then
	_ = out.SetWriteDeadline(time.Now().Add(2 * heartbeat)) // a server without deadlines has no such limit either
	if out.Flush() != nil {                                 // before anything is written, which would be a 200
		fail(w, http.StatusInternalServerError, "some middleware does not let a response be flushed")
		return
	}
	if _, err := fmt.Fprint(w, "retry: 2000\n\n"); err != nil || out.Flush() != nil {
		return // the browser has gone
	}
	news, leave := h.hub.join() //nolint:contextcheck // looks are for all who watch, and outlive the first of them
	defer leave()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	search := r.URL.Query().Get("search")
	for {
		var err error
		select {
		case <-news:
			err = h.send(w, search)
		case <-beat.C:
			_, err = fmt.Fprint(w, ": nothing new\n\n")
		case <-r.Context().Done():
			return
		case <-h.hub.closed:
			return
		}
		if err != nil || out.Flush() != nil {
			return // the browser has gone
		}
		_ = out.SetWriteDeadline(time.Now().Add(2 * heartbeat))
	}
}

func (h *Handler) send(w http.ResponseWriter, search string) error {
	text, err := json.Marshal(h.view(h.hub.now(), search)) // without line breaks, which would end the event
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "event: now\ndata: %s\n\n", text)
	return err
}
