package servers

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// fakeTime is where Debian keeps the library that lies about the time.
const fakeTime = "/usr/lib/*/faketime/libfaketime.so.1"

// RedisWithClock is [Redis] with a wall clock of its own: step has it stand so far ahead of the
// true time, or behind, from then on. The server's monotonic clock goes on as ever, as it does
// where an administrator sets the time. It needs libfaketime, by Wolfgang Hommel, of Debian's
// package faketime.
func RedisWithClock(tb testing.TB, args ...string) (s *Server, step func(ahead time.Duration)) {
	tb.Helper()
	found, _ := filepath.Glob(fakeTime) // the pattern is well-formed
	if len(found) == 0 {
		missing(tb, errors.New("there is no "+fakeTime), "faketime")
	}
	clock := filepath.Join(tb.TempDir(), "clock")
	step = func(ahead time.Duration) {
		tb.Helper()
		offset := strconv.FormatFloat(ahead.Seconds(), 'f', 6, 64)
		if ahead >= 0 {
			offset = "+" + offset
		}
		// All at once: the server reads it whenever it asks for the time.
		err := os.WriteFile(clock+".new", []byte(offset+"\n"), 0o600)
		if err == nil {
			err = os.Rename(clock+".new", clock)
		}
		if err != nil {
			tb.Errorf("servers: setting a clock: %v", err)
		}
	}
	step(0)
	p := redisProduct(args)
	p.env = []string{
		// Before the server's own jemalloc comes the allocator of libc: jemalloc asks for the time
		// as it starts, libfaketime allocates as it does, and each would wait for the other.
		"LD_PRELOAD=" + found[0] + ":libc.so.6",
		"FAKETIME_TIMESTAMP_FILE=" + clock, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
	}
	if crashes(p.find(tb), p.env) {
		Lacks(tb, "libfaketime needs libc's allocator, and this server mixes it with jemalloc's, as Debian's Redis 8 does; "+RedisEnv+" can name another")
	}
	return start(tb, p), step
}

// crashes says whether a server cannot even start with an environment. Without a port it would end by itself.
func crashes(path string, env []string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--port", "0", "--save", "")
	cmd.Env = append(os.Environ(), env...)
	said, err := cmd.CombinedOutput() // it fails in any case
	failed, ok := errors.AsType[*exec.ExitError](err)
	return bytes.Contains(said, []byte("crashed by signal")) || ok && !failed.Exited()
}
