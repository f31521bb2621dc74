// Package observe tells what a handler has done with its response writer. What the writer
// can do besides writing (flush, hijack, copy from a file) stays in working order.
package observe

import (
	"bufio"
	"io"
	"maps"
	"net"
	"net/http"

	"github.com/felixge/httpsnoop"
)

// Response is what has been seen of one response. Its zero value has seen nothing. It is
// read after the handler has returned.
type Response struct {
	status   int // 0: nothing was written
	hijacked bool

	header, before http.Header // as it is, and as it was when the handler got it

	// Undo is Restore for a framework without a ResponseWriter.
	Undo func()
}

// Written says whether the response has begun, so that nothing can be put in its place.
func (o *Response) Written() bool { return o.status != 0 || o.hijacked }

// Succeeded says whether the status is below 400. It is, by net/http's rule, if the handler
// wrote nothing at all. Of a hijacked connection it is not known, and so it is not.
func (o *Response) Succeeded() bool { return o.status < http.StatusBadRequest && !o.hijacked }

// Restore makes the header what it was before the handler. The answer in its place is not the handler's.
func (o *Response) Restore() {
	if o.Undo != nil {
		o.Undo()
	}
	clear(o.header)
	maps.Copy(o.header, o.before)
}

// Answered takes note of an answer that is written without a ResponseWriter.
func (o *Response) Answered(status int) { o.saw(status) }

// saw takes note of a status. An informational one does not begin the response: the client
// still waits for the real one.
func (o *Response) saw(status int) {
	informational := status < http.StatusOK && status != http.StatusSwitchingProtocols
	if o.status == 0 && !informational {
		o.status = status
	}
}

// Wrap returns a writer that does what w does, and lets o see it.
func (o *Response) Wrap(w http.ResponseWriter) http.ResponseWriter {
	o.header, o.before = w.Header(), nil
	if len(o.header) > 0 {
		o.before = o.header.Clone()
	}
	return o.watch(w)
}

func (o *Response) watch(w http.ResponseWriter) http.ResponseWriter {
	return o.through(w, httpsnoop.Wrap(w, o.hooks()))
}

func (o *Response) hooks() httpsnoop.Hooks {
	return httpsnoop.Hooks{
		WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(status int) {
				next(status)
				o.saw(status)
			}
		},
		Write: func(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
			return func(p []byte) (int, error) {
				o.saw(http.StatusOK)
				return next(p)
			}
		},
		WriteString: func(next httpsnoop.WriteStringFunc) httpsnoop.WriteStringFunc {
			return func(s string) (int, error) {
				o.saw(http.StatusOK)
				return next(s)
			}
		},
		ReadFrom: func(next httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
			return func(src io.Reader) (int64, error) { return o.readFrom(next, src) }
		},
		Flush: func(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
			return func() {
				o.saw(http.StatusOK)
				next()
			}
		},
		FlushError: func(next httpsnoop.FlushErrorFunc) httpsnoop.FlushErrorFunc {
			return func() error {
				o.saw(http.StatusOK)
				return next()
			}
		},
		Hijack: func(next httpsnoop.HijackFunc) httpsnoop.HijackFunc {
			return func() (net.Conn, *bufio.ReadWriter, error) { return o.hijack(next) }
		},
	}
}

// readFrom takes note of a copy that had something to copy: an empty one writes no header.
func (o *Response) readFrom(next func(io.Reader) (int64, error), src io.Reader) (int64, error) {
	n, err := next(src)
	if n > 0 {
		o.saw(http.StatusOK)
	}
	return n, err
}

func (o *Response) hijack(next func() (net.Conn, *bufio.ReadWriter, error)) (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := next()
	o.hijacked = o.hijacked || err == nil
	return conn, rw, err
}
