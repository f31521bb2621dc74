package inspector

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/operate"
)

//go:embed page
var files embed.FS

// Handler serves the page. See [New].
type Handler struct {
	locks    *core.Locker
	prefix   string
	title    string
	allow    func(*http.Request, Action) (string, error)
	log      *slog.Logger
	recorder *Recorder
	hub      *hub
	marks    *markerLook
}

var _ http.Handler = (*Handler)(nil)

// New returns a page about the locks that a Locker can see. It does no I/O, and nothing is asked before
// somebody watches.
func New(locks *core.Locker, opts ...Option) *Handler {
	h := &Handler{locks: locks}
	for _, o := range opts {
		o.apply(h)
	}
	if h.log == nil {
		h.log = slog.Default()
	}
	if h.recorder == nil {
		h.recorder = &Recorder{newHistory()}
	}
	h.marks = newMarkerLook(locks, h.prefix)
	h.hub = newHub(operate.New(locks), h.prefix, h.recorder.history)
	return h
}

// Watch looks once a second until ctx ends, as if somebody watched: so that there is a past to look at.
func (h *Handler) Watch(ctx context.Context) {
	_, leave := h.hub.join() //nolint:contextcheck // looks are for all who watch, and outlive the first of them
	defer leave()
	select {
	case <-ctx.Done():
	case <-h.hub.closed:
	}
}

// Close ends the streams and the looks. It does not close the Locker. It may be called twice.
func (h *Handler) Close() { h.hub.close() }

// policy forbids all that the page does not need.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler. The last part of the path says what is meant, so that the page can be
// mounted anywhere.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if r.URL.Path == "" { // StripPrefix has left nothing: relative links need the slash
		header.Set("Location", path.Base(strings.SplitN(r.RequestURI, "?", 2)[0])+"/")
		w.WriteHeader(http.StatusMovedPermanently)
		return
	}
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	method := http.MethodGet
	if name == "release" || name == "unmark" {
		method = http.MethodPost
	}
	if r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead) {
		header.Set("Allow", method)
		fail(w, http.StatusMethodNotAllowed, "this wants "+method)
		return
	}
	switch name {
	case "events":
		h.events(w, r)
	case "history":
		h.history(w, r)
	case "markers":
		h.markers(w, r)
	case "release", "unmark":
		h.change(w, r, name == "unmark")
	case "":
		h.file(w, "index.html")
	default:
		h.file(w, name)
	}
}

func (h *Handler) file(w http.ResponseWriter, name string) {
	text, err := fs.ReadFile(files, "page/"+name)
	if err != nil {
		fail(w, http.StatusNotFound, "there is nothing here")
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	w.Header().Set("Cache-Control", "no-cache") // another version may be deployed at any time
	_, _ = w.Write(text)                        //nolint:gosec // G705: a file that is compiled in; who has gone does not read it
}

// fail answers with a problem in words.
func fail(w http.ResponseWriter, status int, text string) {
	answer(w, status, map[string]string{"error": text})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // who has gone does not read it
}
