package faultproxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"
)

// queued is how many chunks may be under way in one direction before the proxy stops
// reading from the sender.
const queued = 1024

// chunk is what one read returned.
type chunk struct {
	data []byte
	due  time.Time
	lost bool
	end  error // the sender has closed (io.EOF) or broken off; data is empty
}

// loss says what becomes of the server's next bytes.
type loss int

const (
	lossNone    loss = iota
	lossNext         // the next chunk is lost, whatever is sent meanwhile
	lossRest         // that chunk was lost; so is the rest of it, until another request is passed on
	lossCut          // the connection ends in their place
	lossRequest      // the request is not passed on either: the connection ends in its place
)

// read queues what src sends. It is apart from the passing on so that a delay does not
// limit throughput.
func (l *link) read(src net.Conn, out chan<- chunk, arrived func() chunk) {
	defer close(out)
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			c := arrived()
			c.data = bytes.Clone(buf[:n])
			if !l.enqueue(out, c) {
				return
			}
		}
		if err != nil {
			c := arrived()
			c.end = err
			l.enqueue(out, c)
			return
		}
	}
}

func (l *link) enqueue(out chan<- chunk, c chunk) bool {
	select {
	case out <- c:
		return true
	case <-l.ctx.Done():
		return false
	}
}

func (l *link) requestChunk() chunk {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	toServer, _ := l.delay()
	return chunk{due: time.Now().Add(toServer)}
}

// replyChunk judges a reply when it is read, not when it is due: the client's next request
// must not save it.
func (l *link) replyChunk() chunk {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	switch l.reply {
	case lossNext:
		l.reply = lossRest
	case lossCut:
		l.abort()
	default:
	}
	_, toClient := l.delay()
	return chunk{due: time.Now().Add(toClient), lost: l.reply != lossNone}
}

// delay is that of the proxy and the link's own. p.mu is held.
func (l *link) delay() (toServer, toClient time.Duration) {
	toServer, toClient = l.p.toServer, l.p.toClient
	if l.p.delays != nil {
		there, back := l.p.delays(l.number)
		toServer, toClient = toServer+there, toClient+back
	}
	return toServer, toClient
}

// passRequests carries bytes from the client to the server.
func (l *link) passRequests(server net.Conn, in <-chan chunk) {
	for c := range in {
		if !l.awaitDue(c) || !l.awaitRelease() {
			return
		}
		if l.blackHoled() {
			continue
		}
		if c.end != nil {
			// In order even if the client broke off: a reset could overtake what was held.
			halfClose(server)
			return
		}
		before, passed := l.countRequest()
		if !passed {
			l.abort()
			return
		}
		if before != nil {
			before()
		}
		if _, err := server.Write(c.data); err != nil {
			l.abort() // the server has gone: so must the client's connection
			return
		}
	}
}

// passReplies carries bytes from the server to the client.
func (l *link) passReplies(in <-chan chunk) {
	gone := false
	for c := range in {
		if !l.awaitDue(c) {
			return
		}
		switch {
		case l.blackHoled():
		case errors.Is(c.end, io.EOF):
			halfClose(l.client)
		case c.end != nil:
			l.abort()
		case !c.lost && !gone:
			// A client that has gone does not end the link: what is held of it must still reach
			// the server.
			_, err := l.client.Write(c.data)
			gone = err != nil
		}
	}
}

// awaitDue sleeps until c is due. It is false if the link has ended.
func (l *link) awaitDue(c chunk) bool {
	wait := time.Until(c.due)
	if wait <= 0 {
		return l.ctx.Err() == nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// awaitRelease waits while requests are held. It is false if the link has ended.
func (l *link) awaitRelease() bool {
	l.p.mu.Lock()
	gate := l.p.gate
	l.p.mu.Unlock()
	select {
	case <-gate:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// blackHoled says whether what is at hand goes nowhere, and remembers the loss.
func (l *link) blackHoled() bool {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	dark := l.inDark()
	l.lossy = l.lossy || dark
	return dark
}

// inDark says whether a black hole is there for the link. p.mu is held.
func (l *link) inDark() bool { return l.p.blackHole || l.begunDark }

// countRequest counts a request that is about to be passed on, and settles what becomes of
// its reply. Nothing is passed on if it says so, nor before what is to be called.
func (l *link) countRequest() (before func(), passed bool) {
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	switch fate, lost := p.lost[p.requests]; {
	case lost:
		delete(p.lost, p.requests)
		l.reply = fate
	case l.reply == lossRest:
		l.reply = lossNone
	}
	before = p.before[p.requests]
	delete(p.before, p.requests)
	return before, l.reply != lossRequest
}
