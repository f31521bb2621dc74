package idempotency

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/httpmw/internal/observe"
)

// kept is an answer as a store has it.
type kept struct {
	Fingerprint string              `json:"f"`
	Status      int                 `json:"s"`
	Header      map[string][][]byte `json:"h,omitempty"` // what the handler has changed; bytes, since not all headers are UTF-8
	Body        []byte              `json:"b,omitempty"`
	Whole       bool                `json:"w"` // the body is all of it
}

func decode(raw []byte) (*kept, error) {
	var a kept
	if err := json.Unmarshal(raw, &a); err != nil || a.Status < 200 || a.Status > 999 || a.Fingerprint == "" {
		return nil, fmt.Errorf("a record that is not one of ours: %w", err)
	}
	return &a, nil
}

// write gives the answer again.
func (a *kept) write(w http.ResponseWriter) {
	h := w.Header()
	for name, values := range a.Header {
		if !collected(name) {
			h.Del(name)
		}
		for _, v := range values {
			if !slices.Contains(h[name], string(v)) || !collected(name) {
				h[name] = append(h[name], string(v))
			}
		}
	}
	h.Set(ReplayedHeader, "true")
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // it fails if the client has gone
}

// collected says of a header that middleware outside adds values to it that are of this request, such as its session.
func collected(name string) bool { return name == "Set-Cookie" || name == "Vary" }

// changed is what a handler has made of the headers that it found. What it removed has no values.
func changed(found, left http.Header) map[string][][]byte {
	diff := make(map[string][][]byte)
	for name := range found {
		if left[name] == nil && !collected(name) {
			diff[name] = nil
		}
	}
	for name, values := range left {
		if slices.Equal(values, found[name]) {
			continue
		}
		for _, v := range values {
			if !collected(name) || !slices.Contains(found[name], v) {
				diff[name] = append(diff[name], []byte(v))
			}
		}
	}
	return diff
}

// capture holds an answer back until it is kept, up to a limit: who has got an answer gets it again.
// A flushed or larger one, or one with trailers, is sent as it comes.
type capture struct {
	to    http.ResponseWriter
	limit int64

	found     http.Header // as it was when the handler got it
	header    http.Header // the handler's
	begun     http.Header // as it was when the status was set: what comes later is too late
	status    int         // 0: nothing was written
	body      []byte
	committed bool // it is sent as it comes
	cut       bool // body is not all of it
}

// Header returns the headers for the handler: as without the middleware it sees, replaces and removes those from outside. It is
// the same map at any time, since a handler may keep it.
func (c *capture) Header() http.Header {
	if c.header == nil {
		c.found, c.header = c.to.Header().Clone(), c.to.Header().Clone()
		if c.header == nil {
			c.header = make(http.Header)
		}
	}
	return c.header
}

func (c *capture) WriteHeader(status int) {
	informational := status < http.StatusOK && status != http.StatusSwitchingProtocols // and nothing is sent yet
	if c.status == 0 && !informational {
		c.begin(status)
	}
}

func (c *capture) begin(status int) {
	c.status, c.begun = status, c.header.Clone()
	switch {
	case c.committed: // nothing was written in time: it is a framework's answer to an error
		c.send()
	case c.begun["Trailer"] != nil: // which come after the body
		c.cut = true
		c.commit()
	}
}

func (c *capture) Write(p []byte) (int, error) {
	if c.status == 0 {
		c.begin(http.StatusOK)
	}
	if !c.committed && int64(len(c.body)+len(p)) > c.limit {
		c.cut = true
		c.commit()
	}
	if c.committed {
		return c.to.Write(p)
	}
	c.body = append(c.body, p...)
	return len(p), nil
}

// Flush implements http.Flusher.
func (c *capture) Flush() { _ = c.FlushError() }

// FlushError is what http.ResponseController calls.
func (c *capture) FlushError() error {
	if c.status == 0 {
		c.begin(http.StatusOK)
	}
	c.cut = true // more may follow
	c.commit()
	return http.NewResponseController(c.to).Flush()
}

// Hijack is refused: nobody could keep what goes over a connection, nor give it again.
func (c *capture) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, fmt.Errorf("an answer to an Idempotency-Key: %w", http.ErrNotSupported)
}

// CloseNotify implements http.CloseNotifier, without which gin's c.Stream panics.
func (c *capture) CloseNotify() <-chan bool { return observe.CloseNotify(c.to) }

// Unwrap is for http.ResponseController, which sets deadlines.
func (c *capture) Unwrap() http.ResponseWriter { return c.to }

// commit sends what was held back.
func (c *capture) commit() {
	if c.committed {
		return
	}
	c.committed = true
	c.send()
	if len(c.body) > 0 {
		_, _ = c.to.Write(c.body) // it fails if the client has gone
	}
}

// send sends the header as it was when the status was set.
func (c *capture) send() {
	header := c.begun
	if c.status == 0 {
		header = c.header
	}
	if header != nil { // the handler has asked for it
		clear(c.to.Header())
		maps.Copy(c.to.Header(), header)
	}
	if c.status != 0 {
		c.to.WriteHeader(c.status)
	}
}

// end sends what is still held back, and the trailers: what the handler has set since the status.
func (c *capture) end() {
	c.commit()
	for name, values := range c.header {
		announced := c.begun["Trailer"] != nil && !slices.Equal(values, c.begun[name])
		if announced || strings.HasPrefix(name, http.TrailerPrefix) {
			c.to.Header()[name] = values
		}
	}
}

// bare says that the answer is a 200 and nothing else.
func (c *capture) bare() bool {
	return c.status == http.StatusOK && len(c.body) == 0 && len(changed(c.found, c.begun)) == 0 && !c.cut
}

// torn says that the body is not what the handler had announced, such as one that it copies from an
// upstream that breaks off. The client sees that, and must not get it again.
func (c *capture) torn() bool {
	if c.cut || c.status == http.StatusNoContent || c.status == http.StatusNotModified {
		return false
	}
	n, err := strconv.ParseInt(c.begun.Get("Content-Length"), 10, 64)
	return err == nil && n >= 0 && n != int64(len(c.body))
}

// answer is what is kept.
func (c *capture) answer(fingerprint string) *kept {
	for name := range c.header {
		c.cut = c.cut || strings.HasPrefix(name, http.TrailerPrefix)
	}
	a := &kept{Fingerprint: fingerprint, Status: c.status, Whole: !c.cut}
	if a.Whole {
		a.Header, a.Body = changed(c.found, c.begun), c.body
		for _, own := range []string{"Date", "Connection", "Transfer-Encoding"} {
			delete(a.Header, own)
		}
	}
	return a
}
