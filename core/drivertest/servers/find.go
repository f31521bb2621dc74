package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// RequireEnv is the environment variable that, set to "1", makes a missing server a failed
// test. It is set where the servers should be there: in CI, and by make test.
const RequireEnv = "HOLDFAST_REQUIRE_SERVERS"

// Find returns the path of a server's binary, which the named Debian package installs.
// Where it is missing, Find skips the test and logs why, or fails it if [RequireEnv] says
// so. Nothing else decides that.
func Find(tb testing.TB, binary, debianPackage string) string {
	tb.Helper()
	path, err := lookup(binary)
	if err == nil {
		return path
	}
	missing(tb, err, debianPackage)
	return ""
}

// missing skips or fails the test for what is not installed.
func missing(tb testing.TB, err error, debianPackage string) {
	tb.Helper()
	Lacks(tb, fmt.Sprintf("%v; on Debian: apt-get install %s", err, debianPackage))
}

// Lacks skips the test for what this machine cannot do, or fails it where [RequireEnv] asks for everything.
func Lacks(tb testing.TB, reason string) {
	tb.Helper()
	if os.Getenv(RequireEnv) == "1" {
		tb.Fatalf("%s=1, but %s", RequireEnv, reason)
	}
	tb.Skip(reason)
}

// lookup finds a binary on the PATH, or where distributions put servers that users do not
// run by hand.
func lookup(binary string) (string, error) {
	path, err := exec.LookPath(binary)
	if err == nil {
		return path, nil
	}
	for _, dir := range []string{
		"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/opt/homebrew/bin",
		"/usr/lib/postgresql/*/bin", "/usr/share/zookeeper/bin",
	} {
		found, _ := filepath.Glob(filepath.Join(dir, binary)) // the patterns are well-formed
		for _, path := range found {
			if _, err := exec.LookPath(path); err == nil { // it is executable
				return path, nil
			}
		}
	}
	return "", err
}
