package servers

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"
)

// sqlServers start a server of each product.
var sqlServers = map[string]func(tb testing.TB, args ...string) *Server{"postgres": Postgres, "mariadb": MariaDB}

// eachSQL runs the test for every product that is installed.
func eachSQL(t *testing.T, test func(t *testing.T, start func(tb testing.TB, args ...string) *Server)) {
	t.Helper()
	for name, start := range sqlServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start)
		})
	}
}

func TestSQLServersEndWithTheirTest(t *testing.T) {
	t.Parallel()
	eachSQL(t, func(t *testing.T, start func(tb testing.TB, args ...string) *Server) {
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

func TestSQLServersRestart(t *testing.T) {
	t.Parallel()
	eachSQL(t, func(t *testing.T, start func(tb testing.TB, args ...string) *Server) {
		s := start(t)
		addr := s.Addr()
		dial(t, addr)
		for range 3 {
			s.Kill()
			s.Restart()
		}
		began := time.Now()
		s.Stop()
		if took := time.Since(began); took > endBound/2 {
			t.Errorf("it took %v to stop", took)
		}
		s.RestartEmpty()
		if s.Addr() != addr || s.PID() == 0 {
			t.Errorf("now %s, pid %d; before %s", s.Addr(), s.PID(), addr)
		}
		dial(t, addr)
	})
}

func TestAFailedStartOfAnSQLServerShowsItsLog(t *testing.T) {
	t.Parallel()
	eachSQL(t, func(t *testing.T, start func(tb testing.TB, args ...string) *Server) {
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

func TestAFailedPreparationOfAnSQLServerShowsWhy(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]product{"postgres": postgresProduct(nil), "mariadb": mariadbProduct(nil)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := Find(t, p.binary, p.debianPackage)
			_, err := launch(t, p, path, t.TempDir()) // where the server's account may not go, and root need not ask
			if os.Getuid() == 0 && err == nil {
				t.Error("it has started in a directory that it cannot enter")
			}
		})
	}
}
