package onredis

import (
	"net"
	"sync"
)

// bufferedConn is a connection whose writes do not wait for a reader. A go-redis
// subscription reads under the mutex under which it writes: over a bare net.Pipe, both ends
// would wait for the other to read.
type bufferedConn struct {
	net.Conn
	out    chan []byte
	closed chan struct{}
	once   sync.Once
}

func buffered(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	c := &bufferedConn{Conn: conn, out: make(chan []byte, 1024), closed: make(chan struct{})}
	go c.pump()
	return c, nil
}

func (c *bufferedConn) Write(p []byte) (int, error) {
	select {
	case c.out <- append([]byte(nil), p...):
		return len(p), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *bufferedConn) pump() {
	for {
		select {
		case p := <-c.out:
			if _, err := c.Conn.Write(p); err != nil {
				return
			}
		case <-c.closed:
			return
		}
	}
}

func (c *bufferedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
