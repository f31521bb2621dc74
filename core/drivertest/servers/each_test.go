package servers

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// each runs the test for every kind of server that is started in a way of its own.
func each(t *testing.T, test func(t *testing.T, start func(tb testing.TB, args ...string) *Server)) {
	t.Helper()
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start)
		})
	}
}

var starts = map[string]func(tb testing.TB, args ...string) *Server{"redis": Redis, "postgres": Postgres, "mariadb": MariaDB}

func TestServersEndWithTheirTest(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(tb testing.TB, args ...string) *Server) {
		var s *Server
		var pid int
		t.Run("owner", func(t *testing.T) {
			s = start(t)
			pid = s.PID()
			dial(t, s.Addr()) // and stays connected
		})
		if s == nil {
			t.Skip("it is not installed")
		}
		wantGone(t, pid)
		wantRefused(t, s.Addr())
		if _, err := os.Stat(s.root); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("its directory: %v; want it gone", err)
		}
	})
}

func TestServersRestart(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(tb testing.TB, args ...string) *Server) {
		s := start(t)
		addr := s.Addr()
		dial(t, addr)
		for range 3 {
			s.Kill()
			s.Restart()
		}
		s.Stop()
		s.RestartEmpty()
		if s.Addr() != addr || s.PID() == 0 {
			t.Errorf("now %s, pid %d; before %s", s.Addr(), s.PID(), addr)
		}
		dial(t, addr)
	})
}

func TestAFailedStartShowsTheServersLog(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(tb testing.TB, args ...string) *Server) {
		tb := pretend(t, func(tb testing.TB) { start(tb, "--nosuchoption=x") })
		if tb.skipped {
			t.Skip(tb.text.String())
		}
		if !tb.failed {
			t.Fatalf("%v; want a failure", tb)
		}
		wantText(t, tb, "nosuchoption")
	})
}

// A server that answers may be another one, which was quicker to take the port.
func TestAnotherServerOnThePortIsNotTakenForReady(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]func() product{
		"redis": func() product { return redisProduct(nil) }, "etcd": func() product { return etcdProduct(nil) },
		"zookeeper": func() product { return zooKeeperProduct(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := p()
			s := &Server{tb: t, product: p, path: p.find(t), root: t.TempDir(), port: start(t, p).port}
			if err := s.start(); !errors.Is(err, errPortTaken) || s.PID() != 0 {
				t.Errorf("start: %v; want %v; process %d", err, errPortTaken, s.PID())
			}
		})
	}
}
