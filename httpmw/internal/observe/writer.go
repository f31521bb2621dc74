package observe

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
)

// writer is what a handler writes to. It offers what net/http's own writer does, since handlers look for that. Whether the one
// below can do it shows when it is asked to: an error says that it cannot, as from [http.ResponseController].
type writer struct {
	http.ResponseWriter

	seen *Response
}

func (w *writer) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	w.seen.Answered(status)
}

func (w *writer) Write(p []byte) (int, error) {
	w.seen.Answered(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom, with which the kernel copies files. An empty copy writes no header.
func (w *writer) ReadFrom(src io.Reader) (int64, error) {
	n, err := io.Copy(w.ResponseWriter, src)
	if n > 0 {
		w.seen.Answered(http.StatusOK)
	}
	return n, err
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError is what http.ResponseController calls.
func (w *writer) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		w.seen.Answered(http.StatusOK)
	}
	return err
}

// Hijack implements http.Hijacker.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.seen.hijacked = w.seen.hijacked || err == nil
	return conn, rw, err
}

// CloseNotify implements http.CloseNotifier, without which gin's c.Stream panics.
func (w *writer) CloseNotify() <-chan bool { return CloseNotify(w.ResponseWriter) }

// CloseNotify is that of w, or a channel on which nothing comes.
func CloseNotify(w http.ResponseWriter) <-chan bool {
	if n, ok := w.(http.CloseNotifier); ok { //nolint:staticcheck // SA1019: handlers that still use it go on working
		return n.CloseNotify()
	}
	return make(chan bool)
}

// Unwrap is for http.ResponseController, which sets deadlines.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
