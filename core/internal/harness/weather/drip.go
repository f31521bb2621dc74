//go:build linux

package weather

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// dripper stands before a worker's proxy. When it is slow, what it carries arrives a few bytes
// at a time: every reply is cut, and no timeout of silence helps.
type dripper struct {
	listener *net.TCPListener
	target   string
	slow     atomic.Bool
}

const (
	dripBytes = 2                // at a time
	dripPause = time.Millisecond // between them
)

func newDripper(tb testing.TB, target string) *dripper {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	d := &dripper{listener: l.(*net.TCPListener), target: target}
	tb.Cleanup(func() { _ = l.Close() })
	go d.serve()
	return d
}

func (d *dripper) serve() {
	for {
		client, err := d.listener.AcceptTCP()
		if err != nil {
			return
		}
		go d.link(client)
	}
}

func (d *dripper) link(client *net.TCPConn) {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", d.target)
	if err != nil { // it refuses: so does the dripper, as well as it can
		reset(client)
		return
	}
	server := conn.(*net.TCPConn)
	go d.carry(server, client)
	d.carry(client, server)
}

// carry passes on what comes from src, and how it ends.
func (d *dripper) carry(dst, src *net.TCPConn) {
	buf := make([]byte, 4096)
	for {
		n, err := src.Read(buf)
		for sent := 0; sent < n; {
			step := n - sent
			if d.slow.Load() {
				step = min(step, dripBytes)
				time.Sleep(dripPause)
			}
			if _, err := dst.Write(buf[sent : sent+step]); err != nil {
				reset(src)
				return
			}
			sent += step
		}
		if errors.Is(err, io.EOF) {
			_ = dst.CloseWrite()
			return
		}
		if err != nil {
			reset(dst)
			return
		}
	}
}

func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
