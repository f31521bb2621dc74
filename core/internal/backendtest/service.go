package backendtest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

// Server is one that a test may kill.
type Server interface {
	Addr() string
	Kill()
	Restart()
}

var rooms atomic.Int64 // made so far

func room() string { return fmt.Sprint("room_", rooms.Add(1)) }

// Service is a lock service on one server, which has rooms: locks in different rooms do not meet.
type Service struct {
	// Start starts one more server.
	Start func(t testing.TB) Server
	// Open returns one more backend in a room of the server at addr, as another process would have it.
	Open func(t testing.TB, addr, room string) driver.Driver
	// Config makes the room. It returns what the suite can do there beside that.
	Config func(t testing.TB, addr, room string) drivertest.Config
}

// In is a room of a server.
func (s Service) In(t testing.TB, srv Server, room string) drivertest.Config {
	t.Helper()
	c := s.Config(t, srv.Addr(), room)
	c.Driver = func() driver.Driver { return s.Open(t, srv.Addr(), room) }
	c.Through = s.process(t, srv, room).Through
	return c
}

// process is how another process reaches a room, over a link of its own.
func (s Service) process(t testing.TB, srv Server, room string) Process {
	t.Helper()
	return func() (driver.Driver, []*faultproxy.Proxy) {
		link := faultproxy.New(t, srv.Addr())
		return s.Open(t, link.Addr(), room), []*faultproxy.Proxy{link}
	}
}

// Run runs the suite, or parts of it, with a room for each case on a server, and with servers of their own for cases that kill
// them, unless there is no Start.
func (s Service) Run(t *testing.T, srv Server, parts ...string) {
	t.Helper()
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		c := s.In(t, srv, room())
		if s.Start != nil {
			c.Own = func() drivertest.Config {
				own := s.Start(t)
				c := s.In(t, own, room())
				c.Kill, c.Restart = own.Kill, own.Restart
				return c
			}
		}
		return c
	}, parts...)
}

// RunUneven runs the suite over uneven connections: see [Process.Uneven].
func (s Service) RunUneven(t *testing.T, srv Server) {
	t.Helper()
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		room := room()
		return s.process(t, srv, room).Uneven(s.In(t, srv, room))
	})
}
