// Package observe tells what a handler has done with its response writer. Flushing, hijacking and copies from files go on
// working.
package observe

import (
	"maps"
	"net/http"
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

// Succeeded says whether the status is below 400, and none that sends the request elsewhere as it is. It is, by net/http's rule,
// if the handler wrote nothing at all. Of a hijacked connection it is not known, and so it is not.
func (o *Response) Succeeded() bool {
	elsewhere := o.status == http.StatusTemporaryRedirect || o.status == http.StatusPermanentRedirect
	return o.status < http.StatusBadRequest && !elsewhere && !o.hijacked
}

// Restore makes the header what it was before the handler. The answer in its place is not the handler's.
func (o *Response) Restore() {
	if o.Undo != nil {
		o.Undo()
	}
	clear(o.header)
	maps.Copy(o.header, o.before)
}

// Answered takes note of a status. An informational one does not begin the response: the client
// still waits for the real one.
func (o *Response) Answered(status int) {
	informational := status < http.StatusOK && status != http.StatusSwitchingProtocols
	if o.status == 0 && !informational {
		o.status = status
	}
}

// Hijacked takes note that somebody has taken the connection.
func (o *Response) Hijacked() { o.hijacked = true }

// Wrap returns a writer that does what w does, and lets o see it.
func (o *Response) Wrap(w http.ResponseWriter) http.ResponseWriter {
	o.header, o.before = w.Header(), nil
	if len(o.header) > 0 {
		o.before = o.header.Clone()
	}
	return &writer{w, o}
}
