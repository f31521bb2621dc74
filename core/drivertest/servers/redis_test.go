package servers

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestRedisAnswers(t *testing.T) {
	t.Parallel()
	c := dial(t, Redis(t).Addr())
	c.do("SET k v", "+OK")
	c.do("GET k", "$1", "v")
}

func TestArgumentsReachTheServer(t *testing.T) {
	t.Parallel()
	c := dial(t, Redis(t, "--requirepass", "secret", "--maxmemory", "3mb").Addr())
	c.do("GET k", "-NOAUTH Authentication required.")
	c.do("AUTH secret", "+OK")
	c.do("CONFIG GET maxmemory", "*2", "$9", "maxmemory", "$7", "3145728")
}

func TestTwoServersAreApart(t *testing.T) {
	t.Parallel()
	a, b := Redis(t), Redis(t)
	if a.Addr() == b.Addr() || a.PID() == b.PID() {
		t.Fatalf("%s, pid %d, and %s, pid %d", a.Addr(), a.PID(), b.Addr(), b.PID())
	}
	dial(t, a.Addr()).do("SET k v", "+OK")
	dial(t, b.Addr()).do("GET k", "$-1")
}

func TestServerEndsWithItsTest(t *testing.T) {
	t.Parallel()
	var s *Server
	var pid int
	t.Run("owner", func(t *testing.T) {
		s = Redis(t)
		pid = s.PID()
	})
	wantGone(t, pid)
	wantRefused(t, s.Addr())
	if _, err := os.Stat(s.root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v; want it gone", err)
	}
}

func TestStartStopStress(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s := Redis(t)
			for range 3 {
				s.Stop()
				s.Restart()
				s.Kill()
				s.Restart()
			}
			if _, err := ping(s.Addr()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestFailedStartShowsTheServersLog(t *testing.T) {
	t.Parallel()
	tb := pretend(t, func(tb testing.TB) { Redis(tb, "--no-such-directive", "x") })
	if tb.skipped {
		t.Skip(tb.text.String())
	}
	if !tb.failed {
		t.Fatalf("%v; want a failure", tb)
	}
	wantText(t, tb, "no-such-directive", "Bad directive")
}

func TestAnotherServerOnThePortIsNotTakenForReadiness(t *testing.T) {
	t.Parallel()
	other := Redis(t)
	p := redisProduct(nil)
	s := &Server{tb: t, product: p, path: p.find(t), root: t.TempDir(), port: other.port}
	if err := s.start(); !errors.Is(err, errPortTaken) {
		t.Errorf("start: %v; want %v", err, errPortTaken)
	}
	if pid := s.PID(); pid != 0 {
		t.Errorf("process %d runs", pid)
	}
}

func TestLaunchTriesAnotherPort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, taken, _ := strings.Cut(l.Addr().String(), ":")
	p := redisProduct(nil)
	args, starts := p.args, 0
	p.args = func(port int, dir string) []string {
		if starts++; starts == 1 { // as if somebody had been quicker
			port, _ = strconv.Atoi(taken)
		}
		return args(port, dir)
	}
	s, err := launch(t, p, p.find(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	if starts != 2 {
		t.Errorf("started %d times; want 2", starts)
	}
	dial(t, s.Addr()).do("PING", "+PONG")
}
