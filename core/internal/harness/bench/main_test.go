package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// TestMain makes the test binary a worker where bench wants one.
func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := work(context.Background(), os.Stdin, os.Stdout); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

// quickBench is a bench of small numbers on a server of its own.
func quickBench(t *testing.T) *bench {
	t.Helper()
	s := serverAt(servers.Redis(t).Addr())
	t.Cleanup(s.stop)
	return &bench{server: s, rounds: 1, length: 100 * time.Millisecond, quick: true, dir: t.TempDir(), say: func(string) {}}
}

func TestEveryScenarioRunsAndHoldfastBreaksNoPromise(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios() {
		// One configuration of each library runs all of its code.
		s.contestants = slices.DeleteFunc(s.contestants, func(name string) bool {
			return name == "redsync" || name == heldPeer && !strings.HasPrefix(s.name, "held")
		})
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var text bytes.Buffer
			sound, err := quickBench(t).show(t.Context(), []scenario{s}, &text)
			backendtest.OK(t, err)
			if !sound {
				t.Errorf("Holdfast is at fault:\n%s", &text)
			}
			for _, name := range s.contestants {
				if !strings.Contains(text.String(), "\n| "+name+" | ") || !strings.Contains(text.String(), "- **"+name+"**: ") {
					t.Errorf("%s has no row or no settings in\n%s", name, &text)
				}
			}
			if got := strings.Count(text.String(), "met |\n"); got != len(s.goals) {
				t.Errorf("%d verdicts on %d goals in\n%s", got, len(s.goals), &text)
			}
		})
	}
}

func TestAScenarioThatDoesNotExistIsRefusedByNameAndTheOthersAreListed(t *testing.T) {
	t.Parallel()
	for only, want := range map[string]string{
		"":              "",
		"pair":          "",
		"pair, waiting": "",
		"pairs":         `"pairs"`,
		"pair,":         `""`,
		"pair,nonsens":  `"nonsens"`,
	} {
		chosen, _, err := choose(only, false)
		if want == "" {
			if err != nil || len(chosen) == 0 {
				t.Errorf("%q: %v", only, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "held-10000") {
			t.Errorf("%q: %v", only, err)
		}
	}
}

func TestAFarServerIsAsFarAwayAsItSays(t *testing.T) {
	t.Parallel()
	b := quickBench(t)
	f, err := startFar(b.server.addr, 20*time.Millisecond)
	backendtest.OK(t, err)
	b.addr = f.listener.Addr().String()
	if took := b.ping(t.Context()); took < 20*time.Millisecond {
		t.Errorf("a round trip took %s", took)
	}
	f.stop()
}
