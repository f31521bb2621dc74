package servers

import (
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
	return start(tb, product{
		binary:        "memcached",
		debianPackage: "memcached",
		args: func(port int, _ string) []string {
			args := append([]string{"-m", "16"}, args...)
			args = append(args, "-p", strconv.Itoa(port), "-l", "127.0.0.1", "-U", "0", "-vv")
			if os.Geteuid() == 0 { // as root it does not run unless it is told to
				args = append(args, "-u", "root")
			}
			return args
		},
		says: []string{"server listening"}, // from the second level of verbosity on
	})
}
