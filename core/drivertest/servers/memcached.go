package servers

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"testing"
)

// Memcached starts a memcached that belongs to the test, and ends with it. It keeps nothing
// over a restart.
//
// args are added to its command line, such as "-m", "1". The port, the address and the user
// are not theirs to set.
func Memcached(tb testing.TB, args ...string) *Server {
	tb.Helper()
	p := memcachedProduct(args)
	s, err := launch(tb, p, Find(tb, p.binary, p.debianPackage), tb.TempDir())
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	tb.Cleanup(s.Kill) // its log has every command: of use to nobody
	return s
}

func memcachedProduct(extra []string) product {
	return product{
		binary:        "memcached",
		debianPackage: "memcached",
		args: func(port int, _ string) []string {
			args := append([]string{"-m", "16"}, extra...)
			args = append(args, "-p", strconv.Itoa(port), "-l", "127.0.0.1", "-U", "0", "-vv")
			if os.Geteuid() == 0 { // as root it does not run unless it is told to
				args = append(args, "-u", "root")
			}
			return args
		},
		ready: memcachedReady,
	}
}

// memcachedReady is nil once the server listens. That is in its log from the second level of
// verbosity on; who answers on the port may be another server.
func memcachedReady(_ string, log []byte) error {
	if !bytes.Contains(log, []byte("server listening")) {
		return errors.New("it does not listen yet")
	}
	return nil
}
