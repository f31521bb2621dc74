//go:build unix

package faultproxy

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestEveryByteArrivesInOrder(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(conn, conn)
		_ = conn.Close()
	}()
	p := New(t, l.Addr().String())
	p.SetDelay(time.Millisecond, time.Millisecond)
	c := dial(t, p.Addr())
	sent := make([]byte, 4<<20)
	_, _ = rand.Read(sent)
	go func() {
		_, _ = c.Write(sent)
		_ = c.Conn.(*net.TCPConn).CloseWrite() // the end must arrive too, or ReadAll hangs
	}()
	_ = c.SetReadDeadline(time.Now().Add(soon))
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("got %d bytes, %v; want the %d sent", len(got), err, len(sent))
	}
}

func TestClientsEndReachesTheServer(t *testing.T) {
	t.Parallel()
	s, p, c := begin(t, echo)
	c.roundTrip("hello")
	_ = c.Close()
	select {
	case err := <-s.ends:
		if !errors.Is(err, io.EOF) {
			t.Fatalf("the server saw %v; want an orderly end", err)
		}
	case <-time.After(soon):
		t.Fatal("the server's connection stays open")
	}
	for end := time.Now().Add(soon); p.open() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the proxy still remembers the link")
		}
	}
}

func (p *Proxy) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

func TestDeadTargetLooksLikeAReset(t *testing.T) {
	t.Parallel()
	dead := New(t, "unused")
	dead.Refuse(true)
	p := New(t, dead.Addr())
	conn, err := net.DialTimeout("tcp", p.Addr(), soon)
	if err == nil {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(soon))
		_, err = conn.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) { // the dial itself may hear of it
		t.Errorf("%v; want a reset", err)
	}
}

func TestCloseMayBeCalledTwiceAndTogether(t *testing.T) {
	t.Parallel()
	_, p, c := begin(t, echo)
	c.roundTrip("hello")
	p.Hold()
	c.send("held for ever")
	p.BlackHole(true)
	var all sync.WaitGroup
	for range 4 {
		all.Go(p.Close)
	}
	all.Wait()
	c.wantReset()
	p.Heal() // must not listen again: the leak check would find it
}

// TestFaultsMayBeSwitchedUnderTraffic is for the race detector, and for a deadlock.
func TestFaultsMayBeSwitchedUnderTraffic(t *testing.T) {
	t.Parallel()
	s := startLineServer(t, echo)
	p := New(t, s.addr)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					talk(p.Addr())
				}
			}
		})
	}
	var switches sync.WaitGroup
	for range 4 {
		switches.Go(func() {
			for range 50 {
				switchSomething(p)
				time.Sleep(time.Millisecond)
			}
		})
	}
	switches.Wait()
	close(stop)
	clients.Wait()
	p.Heal()
	dial(t, p.Addr()).roundTrip("healthy again")
}

// talk has a short conversation that may fail at any point.
func talk(addr string) {
	conn, err := net.DialTimeout("tcp", addr, soon)
	if err != nil {
		return
	}
	defer conn.Close()
	buf := make([]byte, 64)
	for range 5 {
		_ = conn.SetDeadline(time.Now().Add(5 * time.Millisecond))
		if _, err := io.WriteString(conn, "hello\n"); err != nil {
			return
		}
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
}

func switchSomething(p *Proxy) {
	switch mathrand.IntN(8) {
	case 0:
		p.SetDelay(time.Millisecond, time.Millisecond)
	case 1:
		p.DropReply(2)
	case 2:
		p.BlackHole(true)
	case 3:
		p.BlackHole(false)
	case 4:
		p.Reset()
	case 5:
		p.Refuse(mathrand.IntN(2) == 0)
	case 6:
		defer p.Hold()()
		time.Sleep(time.Millisecond)
	case 7:
		p.Heal()
	}
}
