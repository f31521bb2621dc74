package observe

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// http1 is everything that the writer of net/http's HTTP/1 server can do. Its deadlines and
// its full duplex are reached through Unwrap, as [http.ResponseController] does.
type http1 interface {
	http.ResponseWriter
	http.Flusher
	FlushError() error
	http.Hijacker
	http.CloseNotifier //nolint:staticcheck // SA1019: handlers that still use it go on working
	io.ReaderFrom
	io.StringWriter
}

// http1Writer observes such a writer. httpsnoop would do as well, with two allocations for
// each of the methods: this one is for the server that nearly all requests come through.
type http1Writer struct {
	http1
	seen *Response
}

var _ http1 = (*http1Writer)(nil)

// Unwrap is for [http.ResponseController].
func (w *http1Writer) Unwrap() http.ResponseWriter { return w.http1 }

func (w *http1Writer) WriteHeader(status int) {
	w.http1.WriteHeader(status)
	w.seen.saw(status)
}

func (w *http1Writer) Write(p []byte) (int, error) {
	w.seen.saw(http.StatusOK)
	return w.http1.Write(p)
}

func (w *http1Writer) WriteString(s string) (int, error) {
	w.seen.saw(http.StatusOK)
	return w.http1.WriteString(s)
}

func (w *http1Writer) ReadFrom(src io.Reader) (int64, error) {
	return w.seen.readFrom(w.http1.ReadFrom, src)
}

func (w *http1Writer) Flush() {
	w.seen.saw(http.StatusOK)
	w.http1.Flush()
}

func (w *http1Writer) FlushError() error {
	w.seen.saw(http.StatusOK)
	return w.http1.FlushError()
}

func (w *http1Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.seen.hijack(w.http1.Hijack)
}
