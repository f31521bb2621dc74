package main

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/cmd/holdfast/internal/backend"
	"github.com/holdfast-go/holdfast/core/cmd/holdfast/internal/child"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/operate"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// mainEnv makes holdfast of the test's own program.
const mainEnv = "HOLDFAST_TEST_MAIN"

func TestMain(m *testing.M) {
	if child.Guard() {
		return
	}
	if os.Getenv(mainEnv) != "" {
		_ = os.Unsetenv(mainEnv)
		main()
	}
	// What nohup(1) and a shell's background job ignore, the command leaves ignored. Its tests have it heard, wherever
	// they were started.
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	backend.Quiet()
	goleak.VerifyTestMain(m)
}

var shared servers.SharedRedis

// call runs the command as from a script.
func call(t *testing.T, env map[string]string, args ...string) (out, complaint string, status int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := program{out: &stdout, err: &stderr, getenv: func(key string) string { return env[key] }}
	status = p.run(t.Context(), args)
	return stdout.String(), stderr.String(), status
}

// fleet is a server that a test's processes lock on, and the environment to look at it.
type fleet struct {
	*testing.T
	share servers.Share
	env   map[string]string

	stderr *os.File // of the processes; nil for a file of each
	first  bool     // each is the first process of a namespace
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	share := shared.Use(t)
	return &fleet{T: t, share: share, env: map[string]string{"HOLDFAST_URL": "redis://" + share.Addr + "?prefix=" + share.Prefix}}
}

func (f *fleet) client() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                     f.share.Addr,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// process returns a Locker of its own.
func (f *fleet) process(label string) *core.Locker {
	f.Helper()
	rdb := f.client()
	locks, err := core.New(redislock.New(rdb, redislock.WithPrefix(f.share.Prefix)), core.WithLabel(label))
	backendtest.OK(f, err)
	f.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = locks.Close(ctx) // the test may have left leases
		_ = rdb.Close()
	})
	return locks
}

// acquire holds a name until the test ends, if not for less.
func (f *fleet) acquire(locks *core.Locker, name string, opts ...core.Option) *core.Lease {
	f.Helper()
	x, err := locks.Acquire(f.Context(), name, opts...)
	backendtest.OK(f, err)
	f.Cleanup(func() { _ = x.Release(context.Background()) })
	return x
}

func (f *fleet) info(name string) inspect.LeaseInfo {
	f.Helper()
	info, err := operate.New(f.process("")).Inspect(f.Context(), name)
	backendtest.OK(f, err)
	return info
}

// line has another process wait for a name, until the test ends.
func (f *fleet) line(name string) {
	f.Helper()
	locks := f.process("")
	ctx, cancel := context.WithCancel(f.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() { _, _ = locks.Acquire(ctx, name) })
	f.Cleanup(func() { cancel(); waiting.Wait() })
}

// terminal is one that a test reads.
type terminal struct {
	mu   sync.Mutex // protects text
	text string
}

func (w *terminal) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text += string(b)
	return len(b), nil
}

// shown is all that was.
func (w *terminal) shown() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text
}

func TestACommandLineThatMakesNoSenseIsRefusedWithoutAConnection(t *testing.T) {
	t.Parallel()
	env := map[string]string{"HOLDFAST_URL": "redis://127.0.0.1:1"}
	for line, want := range map[string]string{
		"":                               "usage",
		"frob":                           `unknown command "frob"`,
		"-frob ls":                       "-frob",
		"ls -frob":                       "-frob",
		"ls -o yaml":                     "not one of",
		"inspect":                        "needs a name",
		"inspect {name}":                 "invalid name",
		"ready a":                        `unexpected argument "a"`,
		"schema":                         "needs none",
		"watch":                          "needs a terminal",
		"watch -every 1ms":               "at least 100ms",
		"watch -rows 0":                  "at least 1",
		"release name":                   "needs -handle",
		"release -handle 7":              "needs -handle",
		"release -fence 7 name":          "-fence",
		"release -handle 7 {name}":       "invalid name",
		"release -handle 7 a b":          `unexpected argument "b"`,
		"markers -remove":                "needs one name",
		"markers -scope a":               "goes with -remove",
		"markers -remove -scope a {b}":   "invalid name",
		"run name -wait 0 -- true":       "flags stand before the name",
		"run -- echo hi":                 "no name before --",
		"run":                            "no name",
		"run job":                        "no command",
		"run job --":                     "no command",
		"run -n -wait 1s job -- true":    "which of them",
		"run -shared -limit 2 a -- true": "which of them",
		"run -limit 0 job -- true":       "WithLimit(0)",
		"run -ttl 1ms job -- true":       "minimum",
		"run -E 256 job -- true":         "between 0 and 255",
		"run {job} -- true":              "invalid name",
		"run job -c":                     "-c takes one word",
		"run -wait NaN name -- true":     "neither like 1m30s",
		"run -wait 1e10 name -- true":    "neither like 1m30s",
		"run -wait -1 name -- true":      "negative",
		"run -- -name --":                "no command behind the name",
		"ls -prefix {":                   "WithPrefix",
		"-prefix { release -handle 7 na": "WithPrefix",
		"-url x ls":                      "of the form",
		"-url redis://h/x ls":            "number of a database",
		"-url frob://h run a -- true":    "unknown scheme",
	} {
		out, complaint, status := call(t, env, strings.Fields(line)...)
		if status != misused || out != "" || !strings.Contains(complaint, want) || strings.Contains(complaint, "level=") {
			t.Errorf("%q: status %d, %q, %q", line, status, out, complaint)
		}
	}
	if _, complaint, _ := call(t, nil, "-h"); strings.Count(complaint, "  release ") != 1 {
		t.Errorf("a command is not listed once: %s", complaint)
	}
	if _, complaint, status := call(t, env, "run", "echo", "no-such-command"); status != notFound || !strings.Contains(complaint, `under the name "echo"`) {
		t.Errorf("status %d, %q", status, complaint)
	}
	for _, line := range []string{"-h", "ls -h", "release --help", "run -h", "watch -h", "markers -h", "version -h"} {
		if _, complaint, status := call(t, env, strings.Fields(line)...); status != done || !strings.Contains(complaint, "usage: holdfast") || strings.Contains(complaint, "default 0s") {
			t.Errorf("%q: status %d, %q", line, status, complaint)
		}
	}
	if _, complaint, status := call(t, nil, "ls"); status != misused || !strings.Contains(complaint, "HOLDFAST_URL") {
		t.Errorf("without a URL: status %d, %q", status, complaint)
	}
}

func TestAServerThatDoesNotAnswerIsAFailure(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"redis://127.0.0.1:1", "redis+cluster://127.0.0.1:1", "redis+sentinel://127.0.0.1:1/m"} {
		for _, line := range []string{"ls", "ready", "inspect a", "release -handle 7 name", "release name -handle 7", "markers", "markers -remove a"} {
			out, complaint, status := call(t, nil, append([]string{"-url", place}, strings.Fields(line)...)...)
			if status != unavailable || out != "" || !strings.Contains(complaint, "unavailable") || strings.Contains(complaint, "holdfast.ready") {
				t.Errorf("%s %q: status %d, %q, %q", place, line, status, out, complaint)
			}
			if audited := strings.Contains(complaint, `result="unknown: `); audited != strings.HasPrefix(line, "release") {
				t.Errorf("%s %q: audited %t, %q", place, line, audited, complaint)
			}
			if (line == "ls" || line == "markers") && (!strings.Contains(complaint, place) || !strings.Contains(complaint, "HOLDFAST_URL")) {
				t.Errorf("%s %q does not say what to do: %q", place, line, complaint)
			}
		}
	}
}

func TestFlagsMayStandBehindWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.acquire(f.process("web-7"), "-o")
	for line, want := range map[string]string{
		"ls * -o json": `"name":"-o"`, "ls -o json -- -o": `"name":"-o"`, "inspect -o json -- -o": `"held":true`,
	} {
		if out, complaint, status := call(t, f.env, strings.Fields(line)...); status != done || !strings.Contains(out, want) {
			t.Errorf("%q: status %d, %q, %q", line, status, out, complaint)
		}
	}
}

func TestThePasswordOfTheEnvironmentOpensTheServer(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t, "--requirepass", "hunter2")
	for _, env := range []map[string]string{
		{"HOLDFAST_URL": "redis://" + server.Addr(), "HOLDFAST_PASSWORD": "hunter2"},
		{"HOLDFAST_URL": "redis://:hunter2@" + server.Addr()},
	} {
		if _, complaint, status := call(t, env, "ls"); status != done {
			t.Errorf("status %d, %q", status, complaint)
		}
	}
	if _, complaint, status := call(t, nil, "-url", "redis://"+server.Addr(), "ls"); status != unavailable || !strings.Contains(complaint, "NOAUTH") {
		t.Errorf("without: status %d, %q", status, complaint)
	}
}

func TestReadyAndVersionSaySo(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	if out, complaint, status := call(t, f.env, "ready"); status != done || out != "ready: redis://"+f.share.Addr+"\n" {
		t.Errorf("status %d, %q, %q", status, out, complaint)
	}
	if out, complaint, status := call(t, nil, "version"); status != done || !strings.HasPrefix(out, "holdfast ") {
		t.Errorf("status %d, %q, %q", status, out, complaint)
	}
}
