package main

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// traffic counts the commands that a process sends, by name. The server cannot say: in its
// statistics the commands inside scripts count like those of clients.
type traffic struct {
	mu   sync.Mutex // protects sent
	sent map[string]*atomic.Int64
}

func newTraffic() *traffic { return &traffic{sent: map[string]*atomic.Int64{}} }

// counts is how many commands of each name have been sent so far.
func (t *traffic) counts() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := make(map[string]int64, len(t.sent))
	for name, n := range t.sent {
		counts[name] = n.Load()
	}
	return counts
}

// since is what has been sent after an earlier reading.
func (t *traffic) since(before map[string]int64) map[string]int64 {
	now := t.counts()
	for name, n := range before {
		now[name] -= n
	}
	return now
}

func (t *traffic) counter(name string) *atomic.Int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.sent[name]
	if c == nil {
		c = new(atomic.Int64)
		t.sent[name] = c
	}
	return c
}

// dial opens a connection whose commands are counted.
func (t *traffic) dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &meteredConn{TCPConn: conn.(*net.TCPConn), meter: meter{traffic: t}}, nil
}

// meteredConn is a TCP connection to clients that look for one: it hides nothing of it.
type meteredConn struct {
	*net.TCPConn

	meter meter
}

func (c *meteredConn) Write(p []byte) (int, error) {
	c.meter.feed(p)
	return c.TCPConn.Write(p)
}

// meter reads the commands in a stream of RESP arrays, however the writes cut it.
type meter struct {
	traffic *traffic
	known   map[string]*atomic.Int64 // spares the lock

	kind  byte // of the header that is being read: '*' or '$'
	n     int  // its number so far
	skip  int  // bytes of an argument still to come, its line end included
	first bool // the next argument is the command's name
	name  []byte
}

func (m *meter) feed(p []byte) {
	for len(p) > 0 {
		if m.skip > 0 {
			n := min(m.skip, len(p))
			m.argument(p[:n])
			p = p[n:]
			continue
		}
		m.header(p[0])
		p = p[1:]
	}
}

func (m *meter) argument(p []byte) {
	m.skip -= len(p)
	if !m.first {
		return
	}
	m.name = append(m.name, p...)
	if m.skip == 0 {
		m.first = false
		m.count(bytes.TrimRight(m.name, "\r\n"))
		m.name = m.name[:0]
	}
}

func (m *meter) header(c byte) {
	switch c {
	case '*', '$':
		m.kind, m.n = c, 0
	case '\r':
	case '\n':
		if m.kind == '*' {
			m.first = true
		} else {
			m.skip = m.n + len("\r\n")
		}
	default:
		m.n = 10*m.n + int(c-'0')
	}
}

func (m *meter) count(name []byte) {
	c := m.known[string(name)]
	if c == nil {
		if m.known == nil {
			m.known = map[string]*atomic.Int64{}
		}
		c = m.traffic.counter(strings.ToLower(string(name)))
		m.known[string(name)] = c
	}
	c.Add(1)
}
