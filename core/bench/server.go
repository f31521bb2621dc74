package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is the redis-server of a run. Every round empties it.
type server struct {
	addr  string
	admin *redis.Client
	cmd   *exec.Cmd // nil if it is somebody else's
}

func startServer(ctx context.Context) (*server, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(addr)
	//nolint:gosec // G204: a port number
	cmd := exec.CommandContext(ctx, "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("redis-server is needed on PATH (Debian: apt-get install redis-server): %w", err)
	}
	s := serverAt(addr)
	s.cmd = cmd
	for range 100 {
		if err = s.admin.Ping(ctx).Err(); err == nil {
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	return nil, err
}

func serverAt(addr string) *server {
	return &server{addr: addr, admin: client(addr, newTraffic())}
}

func (s *server) stop() {
	_ = s.admin.Close()
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

func (s *server) version(ctx context.Context) string {
	info, err := s.info(ctx, "server")
	if err != nil {
		return "unknown"
	}
	return info["redis_version"]
}

// usage is what a command has cost so far, inside scripts too.
type usage struct{ calls, usec float64 }

func (s *server) usage(ctx context.Context) (map[string]usage, error) {
	info, err := s.info(ctx, "commandstats")
	if err != nil {
		return nil, err
	}
	all := map[string]usage{}
	for key, value := range info {
		name, ok := strings.CutPrefix(key, "cmdstat_")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(name, "|") // subcommands count as their command
		u := all[name]
		for field := range strings.SplitSeq(value, ",") {
			k, v, _ := strings.Cut(field, "=")
			n, _ := strconv.ParseFloat(v, 64)
			switch k {
			case "calls":
				u.calls += n
			case "usec":
				u.usec += n
			}
		}
		all[name] = u
	}
	return all, nil
}

// serverTime is what the server has spent on the commands that clients sent. The time of a
// script has that of the commands inside it. Where both clients and scripts use a command,
// the clients get their share of its calls.
func serverTime(before, after map[string]usage, sent map[string]int64) time.Duration {
	usec := 0.0
	for name, n := range sent {
		calls := after[name].calls - before[name].calls
		if n > 0 && calls > 0 {
			usec += (after[name].usec - before[name].usec) * min(1, float64(n)/calls)
		}
	}
	return time.Duration(usec * float64(time.Microsecond))
}

func (s *server) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.admin.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	info := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok {
			info[key] = value
		}
	}
	return info, nil
}

// keys counts the keys with a prefix.
func (s *server) keys(ctx context.Context, prefix string) (int, error) {
	keys, err := s.admin.Keys(ctx, prefix+"*").Result()
	return len(keys), err
}

func (s *server) empty(ctx context.Context) error { return s.admin.FlushAll(ctx).Err() }
