package faultproxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest/internal/port"
)

// Proxy carries TCP connections from its own address to a target. See the package comment
// for the faults it can inject.
type Proxy struct {
	tb     testing.TB
	target string
	addr   string

	switching sync.Mutex // held while the listener is opened or closed

	mu        sync.Mutex // protects what follows
	closed    bool
	listener  net.Listener  // nil while new connections are refused
	accepting chan struct{} // closed once nothing accepts from listener any more
	links     map[*link]struct{}

	toServer, toClient time.Duration
	delays             func(n int) (toServer, toClient time.Duration) // of the nth connection, or nil
	connections        int                                            // accepted so far
	blackHole          bool
	newDark            bool // a black hole for the connections that begin in it
	holds              int
	gate               chan struct{}  // closed while nothing is held
	requests           int            // passed on so far
	lost               map[int]loss   // by the number of their request
	before             map[int]func() // likewise

	running sync.WaitGroup // every link's goroutines
}

// New starts a proxy to target, which it dials once for each connection that it accepts.
// It is closed when the test ends.
func New(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p := &Proxy{
		tb:     tb,
		target: target,
		links:  make(map[*link]struct{}),
		gate:   make(chan struct{}),
		lost:   make(map[int]loss),
		before: make(map[int]func()),
	}
	close(p.gate)
	l, err := port.Listen(tb, port.Proxies)
	if err != nil {
		tb.Fatalf("faultproxy: %v", err)
	}
	p.addr = l.Addr().String()
	p.accept(l)
	tb.Cleanup(p.Close)
	return p
}

// Addr is the host and port that clients dial. It stays the same for the proxy's life.
func (p *Proxy) Addr() string { return p.addr }

// Close resets every connection, stops listening, and waits for the proxy's goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stopAccepting()
	p.Reset()
	p.running.Wait()
}

func listen(addr string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(context.Background(), "tcp", addr)
}

// accept takes connections from l until l is closed.
func (p *Proxy) accept(l net.Listener) {
	done := make(chan struct{})
	p.mu.Lock()
	p.listener, p.accepting = l, done
	p.mu.Unlock()
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				p.tb.Errorf("faultproxy: accept: %v", err)
				return
			}
			p.serve(conn)
		}
	}()
}

// stopAccepting returns once dials are refused. Waiting for the accepting goroutine
// matters: the kernel goes on listening until its pending accept has been called off.
func (p *Proxy) stopAccepting() {
	p.switching.Lock()
	defer p.switching.Unlock()
	p.mu.Lock()
	l, done := p.listener, p.accepting
	p.listener = nil
	p.mu.Unlock()
	if l == nil {
		return
	}
	_ = l.Close() // it was open: there is nothing to report
	<-done
}

// startAccepting listens on the proxy's address again.
func (p *Proxy) startAccepting() {
	p.switching.Lock()
	defer p.switching.Unlock()
	p.mu.Lock()
	idle := p.listener == nil && !p.closed
	p.mu.Unlock()
	if !idle {
		return
	}
	l, err := listen(p.addr)
	if err != nil {
		p.tb.Errorf("faultproxy: listening again: %v", err)
		return
	}
	p.accept(l)
}

// serve starts a link for a client's connection.
func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := newLink(p, client)
	if p.closed {
		l.abort()
		return
	}
	l.begunDark = p.newDark
	p.connections++
	l.number = p.connections
	p.links[l] = struct{}{}
	p.running.Go(func() {
		l.run()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	})
}
