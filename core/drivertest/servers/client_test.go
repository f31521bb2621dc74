package servers

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

const (
	soon  = 10 * time.Second       // a bound for what must happen
	quiet = 100 * time.Millisecond // how long what must not happen is looked out for
)

// client is one connection that speaks inline commands.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, soon)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, Conn: conn, r: bufio.NewReader(conn)}
}

func (c *client) send(command string) {
	c.t.Helper()
	if _, err := io.WriteString(c, command+"\r\n"); err != nil {
		c.t.Fatal(err)
	}
}

// receive is the next line.
func (c *client) receive(within time.Duration) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(within))
	line, err := c.r.ReadString('\n')
	return strings.TrimSpace(line), err
}

// do sends a command and wants lines back.
func (c *client) do(command string, want ...string) {
	c.t.Helper()
	c.send(command)
	c.want(want...)
}

func (c *client) want(lines ...string) {
	c.t.Helper()
	for _, want := range lines {
		if got, err := c.receive(soon); got != want || err != nil {
			c.t.Fatalf("received %q, %v; want %q", got, err, want)
		}
	}
}

func wantRefused(t *testing.T, addr string) {
	t.Helper()
	if conn, err := net.DialTimeout("tcp", addr, soon); err == nil {
		_ = conn.Close()
		t.Errorf("somebody still listens on %s", addr)
	}
}
