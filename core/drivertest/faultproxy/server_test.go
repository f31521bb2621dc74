//go:build unix

package faultproxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	soon  = 10 * time.Second       // a bound for what must happen
	quiet = 100 * time.Millisecond // how long what must not happen is looked out for
)

// lineServer answers every line with the parts that answer makes of it.
type lineServer struct {
	addr string
	got  chan string // every line
	ends chan error  // how every connection ended

	accepted atomic.Int64 // connections
}

func echo(line string) []string { return []string{line + "\n"} }

func startLineServer(t *testing.T, answer func(line string) []string) *lineServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &lineServer{addr: l.Addr().String(), got: make(chan string, 10_000), ends: make(chan error, 10_000)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.accepted.Add(1)
			running.Go(func() { s.ends <- s.serve(conn, answer) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait() // connections have ended with the proxy, whose cleanup comes first
	})
	return s
}

func (s *lineServer) serve(conn net.Conn, answer func(string) []string) error {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		s.got <- strings.TrimSpace(line)
		for _, part := range answer(strings.TrimSpace(line)) {
			if _, err := io.WriteString(conn, part); err != nil {
				return err
			}
		}
	}
}

// next is the next line that reaches the server.
func (s *lineServer) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-s.got:
		return line
	case <-time.After(soon):
		t.Fatal("no request reached the server")
		return ""
	}
}

func (s *lineServer) wantNothing(t *testing.T) {
	t.Helper()
	select {
	case line := <-s.got:
		t.Fatalf("request %q reached the server", line)
	case <-time.After(quiet):
	}
}

// wantNothingBut drains what is expected and then wants silence.
func (s *lineServer) wantNothingBut(t *testing.T, lines ...string) {
	t.Helper()
	for _, want := range lines {
		if got := s.next(t); got != want {
			t.Fatalf("the server got %q; want %q", got, want)
		}
	}
	s.wantNothing(t)
}

// wantEnd wants a connection of the server to end, and in this way.
func (s *lineServer) wantEnd(t *testing.T, want error) {
	t.Helper()
	select {
	case err := <-s.ends:
		if !errors.Is(err, want) {
			t.Errorf("the server saw %v; want %v", err, want)
		}
	case <-time.After(soon):
		t.Error("the server's connection stays open")
	}
}

// client is one connection through the proxy.
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

// begin is a server, a proxy before it, and a client of that.
func begin(t *testing.T, answer func(line string) []string) (*lineServer, *Proxy, *client) {
	t.Helper()
	s := startLineServer(t, answer)
	p := New(t, s.addr)
	return s, p, dial(t, p.Addr())
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// receive is the next line, or the error instead of it.
func (c *client) receive(within time.Duration) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(within))
	line, err := c.r.ReadString('\n')
	return strings.TrimSpace(line), err
}

func (c *client) want(line string) {
	c.t.Helper()
	if got, err := c.receive(soon); got != line || err != nil {
		c.t.Fatalf("received %q, %v; want %q", got, err, line)
	}
}

func (c *client) wantNothing() {
	c.t.Helper()
	got, err := c.receive(quiet)
	if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
		c.t.Fatalf("received %q, %v; want silence", got, err)
	}
}

func (c *client) wantReset() {
	c.t.Helper()
	if got, err := c.receive(soon); !errors.Is(err, syscall.ECONNRESET) {
		c.t.Fatalf("received %q, %v; want a reset", got, err)
	}
}

func (c *client) roundTrip(line string) {
	c.t.Helper()
	c.send(line)
	c.want(line)
}
