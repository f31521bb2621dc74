package zklock

import (
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Session learns how long the sessions of one zk.Conn last. The server decides that, and the client
// does not pass it on. So Session reads it from the connection while it is made:
//
//	var session zklock.Session
//	conn, _, err := zk.Connect(servers, 25*time.Second, zk.WithDialer(session.Dial))
//	…
//	locks, err := core.New(zklock.New(conn, &session))
//
// The zero value is ready to use. A Session must not be copied, nor shared by two connections.
type Session struct {
	// Dialer makes the connections, for TLS and the like. The default is net.DialTimeout.
	Dialer zk.Dialer

	mu      sync.Mutex // protects the fields below
	id      int64      // of the last session that a server agreed to
	timeout time.Duration
}

// A server that takes a connection and says nothing on it, as one that starts may, is left after this time. The client
// alone would wait for 6.7 times its session's time-out.
const greetingTimeout = 5 * time.Second

// Dial is a zk.Dialer. Give it to zk.Connect, with zk.WithDialer. A connection on which the server says
// nothing for 5 s ends, so that the client tries again.
func (s *Session) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	dial := s.Dialer
	if dial == nil {
		dial = net.DialTimeout
	}
	conn, err := dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &listener{Conn: conn, session: s, reply: make([]byte, 0, greeting), patience: time.Now().Add(greetingTimeout)}, nil
}

// of is how long session id lasts after the server last heard of it; 0 if that is not known.
func (s *Session) of(id int64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != s.id {
		return 0
	}
	return s.timeout
}

// The first thing that a server sends on a connection is the ConnectResponse of ZooKeeper's
// protocol: its length, the protocol's version, the time-out in ms, the session's id. All
// are big-endian; the id has 8 bytes, the others 4.
const greeting = 4 + 4 + 4 + 8

// listener is a connection that overhears the server's greeting.
type listener struct {
	net.Conn
	session  *Session
	reply    []byte    // what came so far, up to the end of the greeting
	patience time.Time // the greeting has to come before
}

// SetReadDeadline is only called by the goroutine that reads.
func (l *listener) SetReadDeadline(t time.Time) error {
	if len(l.reply) < greeting {
		t = l.patience
	}
	return l.Conn.SetReadDeadline(t)
}

// Read is only called by one goroutine at a time: it is for the client to read replies in
// order.
func (l *listener) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if missing := greeting - len(l.reply); missing > 0 && n > 0 {
		l.reply = append(l.reply, p[:min(n, missing)]...)
		if len(l.reply) == greeting {
			l.session.greeted(l.reply)
		}
	}
	return n, err
}

func (s *Session) greeted(reply []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timeout = time.Duration(binary.BigEndian.Uint32(reply[8:12])) * time.Millisecond
	s.id = int64(binary.BigEndian.Uint64(reply[12:20])) //nolint:gosec // G115: the client takes it for signed, too
}
