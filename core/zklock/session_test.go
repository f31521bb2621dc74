package zklock

import (
	"encoding/binary"
	"errors"
	"net"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// end ends the session of a client, as that could itself, from another connection.
func end(t *testing.T, addr string, of *zk.Conn) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	ok(t, err)
	defer conn.Close()
	send := func(body []byte) {
		_, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
		ok(t, err)
		_, err = conn.Read(make([]byte, 256))
		ok(t, err)
	}
	hello := make([]byte, 4+8+4) // version, the last zxid that it has seen, and time-out
	hello = binary.BigEndian.AppendUint64(hello, uint64(of.SessionID()))
	password := reflect.ValueOf(of).Elem().FieldByName("passwd").Bytes()
	send(append(binary.BigEndian.AppendUint32(hello, uint32(len(password))), password...))
	const closeSession = -11
	send(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 1}, uint32(0xffffffff+closeSession+1)))
}

// SUSPENDED and LOST, as Curator calls them: a session that cannot be heard of, and one that is over.
func TestASuspendedSessionIsNoLossUntilTrustEndsAndALostOneIsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longSession)
	suspended := acquire(t, w.locks, "suspended", core.WithTTL(ttl))
	x := acquire(t, w.locks, "lost", core.WithRenewEvery(200*time.Millisecond))
	first := w.conn.SessionID()

	w.cut(t)
	ok(t, suspended.Err())
	ok(t, x.Err())
	<-suspended.Context().Done()
	lostAs(t, suspended, core.ReasonUnreachable)
	ok(t, x.Err())
	w.proxy.Heal()
	renewed(t, x)
	if w.conn.SessionID() != first {
		t.Fatal("another session")
	}

	until := x.ValidUntil()
	end(t, w.server.Addr(), w.conn)
	<-x.Context().Done()
	lostAs(t, x, core.ReasonTaken)
	if left := time.Until(until); left < longTTL/4 {
		t.Errorf("told %s before it would have ended by itself", left)
	}
	eventually(t, "the next session", func() bool { return w.conn.State() == zk.StateHasSession && w.conn.SessionID() != first })
	ok(t, acquire(t, w.locks, "lost").Release(t.Context()))
}

// ZooKeeper 3.8, as it starts, may take a connection and say nothing on it for as long as it is open. The client would
// wait for 10 times its patience.
func TestAServerThatSaysNothingIsLeft(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t)
	mute, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	ok(t, err)
	t.Cleanup(func() { _ = mute.Close() })
	var broken atomic.Pointer[net.Conn]
	session := &Session{Dialer: func(network, address string, timeout time.Duration) (net.Conn, error) {
		if first := broken.Load(); first != nil && broken.CompareAndSwap(first, nil) {
			address = mute.Addr().String()
		}
		conn, err := net.DialTimeout(network, address, timeout)
		if err == nil && address == server.Addr() {
			broken.CompareAndSwap(nil, &conn)
		}
		return conn, err
	}}
	conn, _, err := zk.Connect([]string{server.Addr()}, longSession, zk.WithDialer(session.Dial), zk.WithLogger(quiet{}))
	ok(t, err)
	t.Cleanup(conn.Close)
	x := acquire(t, locker(t, New(conn, session)), "name", core.WithRenewEvery(200*time.Millisecond))
	ok(t, (*broken.Load()).Close())
	eventually(t, "the client has left it", func() bool { return broken.Load() != nil })
	renewed(t, x)
	ok(t, x.Release(t.Context()))
}

func lostAs(t *testing.T, x *core.Lease, want core.Reason) {
	t.Helper()
	lost, _ := errors.AsType[*core.LostError](x.Err())
	if lost == nil || lost.Reason != want {
		t.Errorf("%v, and not %q", x.Err(), want)
	}
}
