//go:build linux

package weather

import (
	"io"
	"net"
	"testing"
	"time"
)

func TestADripperDeliversEverythingLate(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() { // an echo
		c, err := l.Accept()
		if err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	d := newDripper(t, l.Addr().String())
	d.slow.Store(true)
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", d.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const text = "what is said arrives, a little at a time"
	begin := time.Now()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(c); string(got) != text || err != nil {
		t.Errorf("received %q, %v", got, err)
	}
	if took := time.Since(begin); took < time.Duration(len(text)/dripBytes)*dripPause {
		t.Errorf("it took %v", took)
	}
}
