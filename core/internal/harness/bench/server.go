package main

import (
	"bufio"
	"context"
	"errors"
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

// cpu is the CPU time that the server's main thread has used, which runs all commands.
func (s *server) cpu(ctx context.Context) (time.Duration, error) {
	info, err := s.info(ctx, "cpu")
	if err != nil {
		return 0, err
	}
	seconds := 0.0
	for _, field := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		x, err := strconv.ParseFloat(info[field], 64)
		if err != nil {
			return 0, fmt.Errorf("INFO cpu: %s: %w", field, err)
		}
		seconds += x
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// share is the part of a core that the server has used since an instant.
func (s *server) share(ctx context.Context, used time.Duration, began time.Time) (float64, error) {
	now, err := s.cpu(ctx)
	return float64(now-used) / float64(time.Since(began)), err
}

// calls is how often each command ran between two readings.
func calls(before, after map[string]usage) map[string]float64 {
	n := make(map[string]float64, len(after))
	for name, u := range after {
		n[name] = u.calls - before[name].calls
	}
	return n
}

// memory is what a server keeps, in bytes, without its connections.
func (s *server) memory(ctx context.Context) (float64, error) {
	info, err := s.info(ctx, "memory")
	if err != nil {
		return 0, err
	}
	used, err := strconv.ParseFloat(info["used_memory"], 64)
	clients, err2 := strconv.ParseFloat(info["mem_clients_normal"], 64)
	return used - clients, errors.Join(err, err2)
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

// left counts the keys with a prefix that stay. What a command has made that was executed after its caller had left
// goes within a place's life, 3 s: docs/decisions/008-offers.md.
func (s *server) left(ctx context.Context, prefix string) (n int, err error) {
	for began := time.Now(); time.Since(began) < 4*time.Second; time.Sleep(50 * time.Millisecond) {
		var keys []string
		if keys, err = s.admin.Keys(ctx, prefix+"*").Result(); len(keys) == 0 || err != nil {
			return 0, err
		}
		n = len(keys)
	}
	return n, nil
}

func (s *server) empty(ctx context.Context) error { return s.admin.FlushAll(ctx).Err() }
