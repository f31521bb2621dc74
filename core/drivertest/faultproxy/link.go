package faultproxy

import (
	"context"
	"io"
	"net"
	"sync"
)

// link is one client's connection and the connection to the server that belongs to it.
type link struct {
	p      *Proxy
	client net.Conn
	number int             // of the connection, from 1
	ctx    context.Context // ends with the link
	cancel context.CancelFunc

	mu     sync.Mutex // protects what follows; may be taken while p.mu is held
	ended  bool
	server net.Conn // nil until dialled

	// Protected by p.mu.
	begunDark bool // in a black hole for new connections, which lasts
	lossy     bool // a black hole took something from it
	reply     loss
}

func newLink(p *Proxy, client net.Conn) *link {
	l := &link{p: p, client: client}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// run carries bytes both ways until both ways have ended or the link is aborted.
func (l *link) run() {
	defer l.finish()
	if l.blackHoled() {
		_, _ = io.Copy(io.Discard, l.client) // its end must not be noticed before the black hole's
		<-l.ctx.Done()
		return
	}
	var d net.Dialer
	server, err := d.DialContext(l.ctx, "tcp", l.p.target)
	if err != nil {
		l.abort() // a client that is connected can only be told by a reset
		return
	}
	if !l.attach(server) {
		return
	}
	var ways sync.WaitGroup
	requests, replies := make(chan chunk, queued), make(chan chunk, queued)
	ways.Go(func() { l.read(l.client, requests, l.requestChunk) })
	ways.Go(func() { l.read(server, replies, l.replyChunk) })
	ways.Go(func() { l.passRequests(server, requests) })
	ways.Go(func() { l.passReplies(replies) })
	ways.Wait()
}

// attach makes server part of the link. It is false if the link was aborted meanwhile.
func (l *link) attach(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		reset(server)
		return false
	}
	l.server = server
	return true
}

// abort ends the link with a reset at both ends.
func (l *link) abort() { l.end(reset) }

// finish ends the link in order.
func (l *link) finish() { l.end(func(c net.Conn) { _ = c.Close() }) } // both ways have ended

func (l *link) end(closeConn func(net.Conn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	l.cancel()
	closeConn(l.client)
	if l.server != nil {
		closeConn(l.server)
	}
}

// halfClose passes an orderly end on.
func halfClose(dst net.Conn) {
	if half, ok := dst.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // fails where dst has gone, which dst's own reader reports
	}
}

// reset closes conn so that its peer sees a TCP reset instead of an orderly end.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only on a closed connection
	}
	_ = conn.Close() // it is abandoned: there is nothing to report
}
