package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	share := shared.Use(t)
	return &fleet{t, share, map[string]string{"HOLDFAST_REDIS": share.Addr, "HOLDFAST_PREFIX": share.Prefix}}
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
	locks, err := core.New(redislock.New(rdb, redislock.WithPrefix(f.share.Prefix)), core.WithLabel(label),
		core.WithRenewEvery(300*time.Millisecond)) // so that fences are known soon
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = locks.Close(ctx) // the test may have left leases
		_ = rdb.Close()
	})
	return locks
}

// acquire holds a name until the test ends, if not for less.
func (f *fleet) acquire(locks *core.Locker, name string) *core.Lease {
	f.Helper()
	x, err := locks.Acquire(f.Context(), name)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = x.Release(context.Background()) })
	return x
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

// eventually waits for cond, for what a busy machine may need.
func (f *fleet) eventually(what string, cond func() bool) {
	f.Helper()
	for range 600 {
		if cond() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	f.Fatalf("never came true: %s", what)
}

func TestACommandLineThatMakesNoSenseIsRefusedWithoutAConnection(t *testing.T) {
	t.Parallel()
	env := map[string]string{"HOLDFAST_REDIS": "127.0.0.1:1"}
	for line, want := range map[string]string{
		"":                              "usage",
		"frob":                          `unknown command "frob"`,
		"-frob ls":                      "-frob",
		"ls -frob":                      "-frob",
		"ls a b":                        `unexpected argument "b"`,
		"watch":                         "needs a terminal",
		"watch -every 1ms":              "at least 100ms",
		"watch -rows 0":                 "at least 1",
		"release":                       "needs -fence",
		"release name":                  "needs -fence",
		"release -fence 7":              "needs -fence",
		"release -handle a":             "needs -fence",
		"release -fence 7 -handle a n":  "needs -fence",
		"release -fence 0 name":         "needs -fence",
		"release -fence -7 name":        "-fence",
		"release -fence 7 {name}":       "invalid name",
		"release -fence 7 a b":          `unexpected argument "b"`,
		"-prefix { ls":                  "WithPrefix",
		"-prefix { release -fence 7 na": "WithPrefix",
	} {
		out, complaint, status := call(t, env, strings.Fields(line)...)
		if status != misused || out != "" || !strings.Contains(complaint, want) || strings.Contains(complaint, "level=") {
			t.Errorf("%q: status %d, %q, %q", line, status, out, complaint)
		}
	}
	for _, line := range []string{"-h", "ls -h", "release --help"} {
		if _, complaint, status := call(t, env, strings.Fields(line)...); status != done || !strings.Contains(strings.ToLower(complaint), "usage") {
			t.Errorf("%q: status %d, %q", line, status, complaint)
		}
	}
}

func TestAServerThatDoesNotAnswerIsAFailure(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"ls", "-cluster ls", "release -fence 7 name"} {
		out, complaint, status := call(t, nil, append([]string{"-redis", "127.0.0.1:1"}, strings.Fields(line)...)...)
		if status != failed || out != "" || !strings.Contains(complaint, "unavailable") {
			t.Errorf("%q: status %d, %q, %q", line, status, out, complaint)
		}
	}
}

func TestAPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, line := range []string{
		"-h", "ls -h", "frob", "-redis redis://:hunter2@127.0.0.1:x ls", "-redis rediss://u:hunter2@127.0.0.1:1 ls",
		"-redis http://u:hunter2@127.0.0.1 ls", "-cluster -redis redis://u:hunter2@127.0.0.1:x ls", "-redis redis://:hunter2@%zz ls",
		"-redis redis://u:hunter2/@127.0.0.1 ls", "-redis redis://u:1/hunter2@127.0.0.1 ls", "-redis redis://h?hunter2=1@127.0.0.1 ls",
	} {
		env := map[string]string{"HOLDFAST_REDIS": "redis://:" + secret + "@127.0.0.1:1", "HOLDFAST_REDIS_PASSWORD": secret}
		if out, complaint, _ := call(t, env, strings.Fields(line)...); strings.Contains(out+complaint, secret) {
			t.Errorf("%q: %q, %q", line, out, complaint)
		}
	}
}

func TestThePasswordOfTheEnvironmentOpensTheServer(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t, "--requirepass", "hunter2")
	for _, env := range []map[string]string{
		{"HOLDFAST_REDIS": server.Addr(), "HOLDFAST_REDIS_PASSWORD": "hunter2"},
		{"HOLDFAST_REDIS": "redis://:hunter2@" + server.Addr()},
	} {
		if _, complaint, status := call(t, env, "ls"); status != done {
			t.Errorf("status %d, %q", status, complaint)
		}
	}
	if _, complaint, status := call(t, nil, "-redis", server.Addr(), "ls"); status != failed || !strings.Contains(complaint, "NOAUTH") {
		t.Errorf("without: status %d, %q", status, complaint)
	}
}
