package servers

import (
	"runtime"
	"strings"
	"testing"
)

const noServer = "holdfast-no-such-server"

func findNothing(tb testing.TB) { Find(tb, noServer, "some-package") }

//nolint:paralleltest // sets the environment, in a loop
func TestMissingServerIsASkipThatSaysWhy(t *testing.T) {
	for _, value := range []string{"", "0"} {
		t.Setenv(RequireEnv, value)
		tb := pretend(t, findNothing)
		if !tb.skipped || tb.failed {
			t.Errorf("%s=%q: %v; want a skip", RequireEnv, value, tb)
		}
		wantText(t, tb, noServer, "apt-get install some-package")
	}
}

func TestMissingServerIsAFailureWhereItIsRequired(t *testing.T) {
	t.Setenv(RequireEnv, "1")
	tb := pretend(t, findNothing)
	if tb.skipped || !tb.failed {
		t.Errorf("%v; want a failure", tb)
	}
	wantText(t, tb, RequireEnv, noServer, "apt-get install some-package")
}

func TestServersAreFoundOutsideThePath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such directories")
	}
	t.Setenv("PATH", t.TempDir())
	path, err := lookup("env") // as good as a server, and in /usr/bin everywhere
	if err != nil || path != "/usr/bin/env" {
		t.Errorf("found %q, %v", path, err)
	}
}

func wantText(t *testing.T, tb *fakeTB, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(tb.text.String(), part) {
			t.Errorf("%v; want it to mention %q", tb, part)
		}
	}
}
