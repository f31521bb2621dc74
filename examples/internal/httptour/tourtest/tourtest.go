// Package tourtest has the tests of the examples that package httptour takes for a walk.
package tourtest

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// Example tests an example: run is its main, and flags are those that it is run with, with and without a Redis.
func Example(t *testing.T, run func(ctx context.Context, out io.Writer, args []string) error, flags ...string) {
	t.Helper()
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	for name, args := range map[string][]string{"in memory": nil, "on Redis": {"-redis", server.Addr()}} {
		t.Run("it shows what it says "+name, func(t *testing.T) {
			t.Parallel()
			shows(t, func(out io.Writer) error {
				return run(t.Context(), out, slices.Concat(flags, args, []string{"-once", "-listen", "127.0.0.1:0"}))
			})
		})
	}
	t.Run("it serves until it is told to stop", func(t *testing.T) {
		t.Parallel()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		out := &watched{until: "Ctrl-C", then: stop}
		err := run(ctx, out, append(flags, "-listen", "127.0.0.1:0"))
		if err != nil || !strings.Contains(out.String(), "curl -i -X POST http://127.0.0.1:") {
			t.Errorf("%v, or nothing to try:\n%s", err, out.String())
		}
	})
	for _, args := range [][]string{{"-redis"}, {"-listen", "nowhere"}, {"-redis", "127.0.0.1:1", "-once", "-listen", "127.0.0.1:0"}} {
		if err := run(t.Context(), io.Discard, append(flags, args...)); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

// shows fails the test unless what the example prints, without fences and orders, is what its comments say.
func shows(t *testing.T, run func(out io.Writer) error) {
	t.Helper()
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	rest := out.String()
	for _, want := range []string{
		"200 OK", "409 Conflict", "Retry-After: 1", "problems/held",
		"200 OK", "409 Conflict", "not now: Resource is in use",
		"200 OK", "/ship", "409 Conflict", "problems/already-processed",
		"200 OK", "200 OK", "400 Bad Request", "problems/invalid-key",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("no %q in the right place:\n%s", want, out.String())
		}
		rest = after
	}
}

// watched calls then once it was told until.
type watched struct {
	strings.Builder

	until string
	then  func()
}

func (w *watched) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.until) {
		w.then()
	}
	return w.Builder.Write(p)
}
