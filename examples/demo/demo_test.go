package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// demoEnv makes the test binary the demo. Its value marks the processes of one test.
const demoEnv = "HOLDFAST_DEMO_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(demoEnv) == "" {
		os.Exit(m.Run())
	}
	os.Exit(run())
}

// demo is the command that runs the demo. Env is "key=value".
func demo(t *testing.T, env string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), demoEnv+"="+t.Name(), env,
		"GORACE=atexit_sleep_ms=0") // with -race a process takes a second to end, which is all that children have
	cmd.WaitDelay = time.Second
	return cmd
}

// play runs the demo to its end.
func play(t *testing.T, env string, args ...string) (output string, status int) {
	t.Helper()
	cmd := demo(t, env, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	if stderr.Len() > 0 {
		t.Errorf("stderr: %s", stderr.String())
	}
	t.Logf("exit status %d\n%s", cmd.ProcessState.ExitCode(), stdout.String())
	return stdout.String(), cmd.ProcessState.ExitCode()
}

// row returns the numbers behind a label of the table.
func row(t *testing.T, output, label string) (want, without, with int) {
	t.Helper()
	found := regexp.MustCompile(regexp.QuoteMeta(label) + ` +(\d+) +(\d+) +(\d+)\n`).FindStringSubmatch(output)
	if found == nil {
		t.Fatalf("the table has no row %q", label)
	}
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(found[i+1]) // digits, by the expression
	}
	return n[0], n[1], n[2]
}

// checkTable checks what a demo prints that has gone well.
func checkTable(t *testing.T, output string) {
	t.Helper()
	for _, label := range []string{
		"payments kept", "refunds kept", "bonuses kept", "parcels sent", "lost updates", "double shipments",
	} {
		want, without, with := row(t, output, label)
		if with != want {
			t.Errorf("%s: %d with Holdfast, want %d", label, with, want)
		}
		if label == "lost updates" && without == 0 {
			t.Errorf("%s: %d without Holdfast", label, without)
		}
	}
	for line := range strings.Lines(output) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	if strings.ContainsAny(output, "\x1b\r") {
		t.Error("control characters outside of a terminal")
	}
}

func TestTheDemoLosesNothingWithHoldfast(t *testing.T) {
	t.Parallel()
	rdb := realRedis(t)
	for _, args := range [][]string{nil, {"-redis", rdb.Options().Addr}} {
		output, status := play(t, "", args...)
		if status != 0 {
			t.Errorf("exit status %d", status)
		}
		checkTable(t, output)
	}
	checkKeys(t, rdb)
}

// realRedis is a server that has one key.
func realRedis(t *testing.T) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: servers.Redis(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	noError(t, rdb.Set(t.Context(), mine, "1", 0).Err())
	return rdb
}

const mine = "holdfast-demo-mine"

// checkKeys checks that the key of the test is the only one.
func checkKeys(t *testing.T, rdb *redis.Client) {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), "*").Result()
	noError(t, err)
	if len(keys) != 1 || keys[0] != mine {
		t.Errorf("keys: %q", keys)
	}
}

func TestDemoFailsIfAPromiseIsBroken(t *testing.T) {
	t.Parallel()
	output, status := play(t, sabotageEnv+"=contention guard fence")
	if status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	complaints := `FAILED: without Holdfast nothing was lost, so this run proves nothing
with Holdfast \d+ updates were lost
(with Holdfast \d+ parcels were sent twice
)?the late write of A was not refused
the order is not as B has written it
$`
	if !regexp.MustCompile(complaints).MatchString(output) {
		t.Errorf("the output does not end with %s", complaints)
	}
}

func TestThePageIsServedWhileTrafficRunsUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	cmd := demo(t, "", "-ui")
	read, write := io.Pipe()
	cmd.Stdout = write
	noError(t, cmd.Start())
	lines := bufio.NewScanner(read)
	var url string
	for url == "" && lines.Scan() {
		url = regexp.MustCompile(`http://\S+/`).FindString(lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"events", http.NoBody)
	noError(t, err)
	resp, err := http.DefaultClient.Do(req)
	noError(t, err)
	events := bufio.NewScanner(resp.Body)
	events.Buffer(nil, 1<<20)
	for events.Scan() {
		if strings.Contains(events.Text(), `"name":"order:`) {
			break
		}
	}
	noError(t, events.Err())
	resp.Body.Close()
	noError(t, cmd.Process.Signal(os.Interrupt))
	noError(t, cmd.Wait())
}

var noError = locktest.OK
