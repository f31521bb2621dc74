package httpmw

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Problem is the middleware's answer to a request that it does not let through, as problem details
// (RFC 9457). It tells nothing about lock, owner or backend, and repeats nothing of the request.
//
// It is also an error, for error handlers and logs, and as an error it says no more than the client
// is told. Err has the rest.
type Problem struct {
	Type   string `json:"type"` // one of the Type constants
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	// Source is the source of the key that is at fault, as the template has it between its braces, such
	// as "query:page". Reason is "missing", "ambiguous" (several values that differ), "invalid", "content-type" or
	// "too-large". Both are empty if no source is at fault, or it is not known which.
	Source string `json:"source,omitempty"`
	Reason string `json:"reason,omitempty"`

	// Started says that the handler had begun, so that it is not known what it has done. Without it,
	// the request was not started: it may be sent again.
	Started bool `json:"started,omitempty"`

	// RetryAfter is sent as Retry-After, in whole seconds, rounded up. It is 0 if no time for a retry
	// is better than another.
	RetryAfter time.Duration `json:"-"`
	// Err is the cause, for errors.Is, errors.As and logs. It is never sent to the client.
	Err error `json:"-"`
}

// Error returns the status and the title.
func (p *Problem) Error() string { return "holdfast: " + strconv.Itoa(p.Status) + " " + p.Title }

// Unwrap returns p.Err.
func (p *Problem) Unwrap() error { return p.Err }

// ServeHTTP writes the problem: Content-Type, Content-Length, Cache-Control: no-store, Retry-After if
// it has one, and the JSON. Call it before anything else is written.
func (p *Problem) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	body, _ := json.Marshal(p) // strings and a number: it cannot fail
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")                                      // also where the handler had set something else
	for _, name := range []string{"Etag", "Last-Modified", "Retry-After"} { // those of the handler
		h.Del(name)
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // it fails if the client has gone
}
