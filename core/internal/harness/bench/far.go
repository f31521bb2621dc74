package bench

import (
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// far puts a distance between the workers and a server: every byte, there and back, comes later by half of the round trip.
type far struct {
	listener net.Listener
	server   string
	half     time.Duration
	links    sync.WaitGroup
}

// piece is bytes on their way.
type piece struct {
	bytes []byte
	due   time.Duration
}

// onItsWay is how many pieces a direction of a connection carries at once; a larger buffer would hide what the server does.
const onItsWay = 1024

func startFar(server string, roundTrip time.Duration) (*far, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the program
	if err != nil {
		return nil, err
	}
	f := &far{listener: l, server: server, half: roundTrip / 2}
	f.links.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			distant, err := net.Dial("tcp", server) //nolint:noctx // it ends with the program
			if err != nil {
				_ = near.Close()
				continue
			}
			f.links.Go(func() { f.carry(near, distant) })
			f.links.Go(func() { f.carry(distant, near) })
		}
	})
	return f, nil
}

func (f *far) stop() {
	_ = f.listener.Close()
	f.links.Wait() // the workers have gone
}

// carry takes what from sends to the other one, each piece in its time, until one of them is closed.
func (f *far) carry(from, to net.Conn) {
	pieces := make(chan piece, onItsWay)
	f.links.Go(func() {
		defer close(pieces)
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			pieces <- piece{append([]byte(nil), buffer[:n]...), monotonic() + f.half}
		}
	})
	for p := range pieces {
		if left := p.due - monotonic(); left > 0 {
			ts := unix.NsecToTimespec(int64(left)) // time.Sleep would round up to a millisecond on an idle machine
			_ = unix.Nanosleep(&ts, nil)
		}
		_, _ = to.Write(p.bytes)
	}
	_ = from.Close()
	_ = to.Close()
}
