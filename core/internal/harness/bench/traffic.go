package bench

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// traffic counts the commands that a process sends. The server cannot say: in its statistics the commands inside scripts count
// like those of clients.
type traffic struct{ sent atomic.Int64 }

// client is the go-redis client of every contestant that uses one. Its pool is the default one, of ten connections for each core:
// more of them make everybody slower here.
func client(addr string, t *traffic) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:   addr,
		Dialer: t.dial,
		// A handshake that the server does not know.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// dial opens a connection whose commands are counted.
func (t *traffic) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &meteredConn{TCPConn: conn.(*net.TCPConn), meter: meter{sent: &t.sent}}, nil
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

// meter counts the commands in a stream of RESP arrays, however the writes cut it.
type meter struct {
	sent  *atomic.Int64
	array bool // the header that is being read is that of a command, not of an argument
	n     int  // its number so far
	skip  int  // bytes of an argument still to come, its line end included
}

// feed is on the way of every command: at full speed a batching client writes one each few µs.
func (m *meter) feed(p []byte) {
	for len(p) > 0 {
		if m.skip > 0 {
			n := min(m.skip, len(p))
			m.skip, p = m.skip-n, p[n:]
			continue
		}
		switch c := p[0]; c {
		case '*':
			m.sent.Add(1)
			m.array = true
		case '$':
			m.array, m.n = false, 0
		case '\r':
		case '\n':
			if !m.array {
				m.skip = m.n + len("\r\n")
			}
		default:
			m.n = 10*m.n + int(c-'0')
		}
		p = p[1:]
	}
}
