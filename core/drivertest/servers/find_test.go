package servers

import (
	"strings"
	"testing"
)

//nolint:paralleltest // sets the environment
func TestAMissingServerIsASkipOrAFailureThatSaysWhy(t *testing.T) {
	for value, required := range map[string]bool{"": false, "0": false, "1": true} {
		t.Setenv(RequireEnv, value)
		tb := pretend(t, func(tb testing.TB) { Find(tb, "holdfast-no-such-server", "some-package") })
		if tb.skipped == required || tb.failed != required {
			t.Errorf("%s=%q: %v", RequireEnv, value, tb)
		}
		wantText(t, tb, "holdfast-no-such-server", "apt-get install some-package")
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
