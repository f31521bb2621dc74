package faultproxy

import (
	"net"
	"testing"
	"time"
)

// dialFrom is dial from another of the machine's own addresses, of which Linux has many.
func dialFrom(t *testing.T, host, addr string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}, Timeout: time.Second}
	c, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestABlackHoleForOneSourceIsNoneForOthers(t *testing.T) {
	t.Parallel()
	s := startLineServer(t, echo)
	p := New(t, s.addr)
	here := dial(t, p.Addr())
	here.roundTrip("before")
	s.next(t)
	p.BlackHoleFrom("127.0.0.2", true)
	there := dialFrom(t, "127.0.0.2", p.Addr())
	if _, err := there.Write([]byte("lost\n")); err != nil {
		t.Fatal(err)
	}
	here.roundTrip("meanwhile")
	s.wantNothingBut(t, "meanwhile")
	p.BlackHoleFrom("127.0.0.2", false)
	if _, err := there.Read(make([]byte, 1)); err == nil {
		t.Error("a connection with a hole goes on")
	}
	here.roundTrip("after")
	again := dialFrom(t, "127.0.0.2", p.Addr())
	if _, err := again.Write([]byte("heard\n")); err != nil {
		t.Fatal(err)
	}
	s.wantNothingBut(t, "after", "heard")
}

func TestOneBlackHoleOutlivesTheOther(t *testing.T) {
	t.Parallel()
	s := startLineServer(t, echo)
	p := New(t, s.addr)
	c := dial(t, p.Addr())
	c.roundTrip("before")
	s.next(t)
	p.BlackHole(true)
	p.BlackHoleFrom("127.0.0.1", true)
	p.BlackHole(false)
	c.send("lost")
	s.wantNothingBut(t)
	p.Heal()
	c.wantReset()
	dial(t, p.Addr()).roundTrip("on a new connection")
}
