package main

import (
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

// feed is on the way of every command: at full speed a batching client writes one each few µs.
func (m *meter) feed(p []byte) {
	kind, n := m.kind, m.n
	for i := 0; i < len(p); {
		if m.skip > 0 {
			end := min(i+m.skip, len(p))
			m.argument(p[i:end])
			i = end
			continue
		}
		c := p[i]
		i++
		switch c {
		case '*', '$':
			kind, n = c, 0
		case '\r':
		case '\n':
			if kind == '*' {
				m.first = true
			} else {
				m.skip = n + len("\r\n")
			}
		default:
			n = 10*n + int(c-'0')
		}
	}
	m.kind, m.n = kind, n
}

func (m *meter) argument(p []byte) {
	m.skip -= len(p)
	switch {
	case !m.first:
	case m.skip > 0 || len(m.name) > 0: // cut by the end of a write
		m.name = append(m.name, p...)
		if m.skip == 0 {
			m.count(m.name)
			m.name = m.name[:0]
		}
	default:
		m.count(p)
	}
}

// count counts a command, whose name has its line end still.
func (m *meter) count(name []byte) {
	m.first = false
	name = name[:len(name)-len("\r\n")]
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
