package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// What the example prints, without fences and orders, is what its comments say.
func TestTheExampleShowsWhatItSays(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	for name, args := range map[string][]string{
		"V4":        nil,
		"V5":        {"-v5"},
		"V4OnRedis": {"-redis", server.Addr()},
		"V5OnRedis": {"-v5", "-redis", server.Addr()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if err := run(t.Context(), &out, slices.Concat(args, []string{"-once", "-listen", "127.0.0.1:0"})); err != nil {
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
		})
	}
}

func TestItServesUntilItIsToldToStop(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &watched{until: "Ctrl-C", then: stop}
	if err := run(ctx, out, []string{"-listen", "127.0.0.1:0"}); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "curl -i -X POST http://127.0.0.1:") {
		t.Errorf("nothing to try:\n%s", out.String())
	}
}

func TestWrongArgumentsAreErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-redis"}, {"-listen", "nowhere"}, {"-redis", "127.0.0.1:1", "-once", "-listen", "127.0.0.1:0"}} {
		if err := run(t.Context(), new(strings.Builder), args); err == nil {
			t.Errorf("%q: no error", args)
		}
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
