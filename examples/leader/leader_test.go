package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// exampleEnv makes the test binary the example.
const exampleEnv = "HOLDFAST_EXAMPLE_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(exampleEnv) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// play runs the example to its end. Env is "key=value".
func play(t *testing.T, env string, args ...string) (output string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), exampleEnv+"=1", env)
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

func TestExampleDoesWhatItSays(t *testing.T) {
	t.Parallel()
	output, status := play(t, "")
	if status != 0 || !strings.HasSuffix(output, "All as promised.\n") || strings.Count(output, "leads") != 3 {
		t.Errorf("exit status %d", status)
	}
}

func TestExampleLeavesARealRedisAsItWas(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: servers.Redis(t).Addr()})
	defer rdb.Close()
	if _, status := play(t, "", "-redis", rdb.Options().Addr); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if keys, err := rdb.Keys(t.Context(), "*").Result(); err != nil || len(keys) > 0 {
		t.Errorf("left: %q, %v", keys, err)
	}
}

func TestExampleFailsWhereThereAreTwoLeaders(t *testing.T) {
	t.Parallel()
	if output, status := play(t, sabotageEnv+"=1"); status != 1 || !strings.Contains(output, "FAILED: process") {
		t.Errorf("exit status %d", status)
	}
}

func TestExampleSaysThatRedisIsUnreachable(t *testing.T) {
	t.Parallel()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lis.Close()
	address := lis.Addr().String()
	if output, status := play(t, "", "-redis", address); status != 1 || !strings.Contains(output, "no Redis at "+address) {
		t.Errorf("exit status %d", status)
	}
}
