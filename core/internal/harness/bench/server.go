package bench

import (
	"bufio"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// server is the redis-server of a run. Every round empties it.
type server struct {
	tb    testing.TB
	addr  string
	admin *redis.Client
}

func startServer(tb testing.TB) *server {
	tb.Helper()
	addr := servers.Redis(tb).Addr()
	s := &server{tb, addr, client(addr, new(traffic))}
	tb.Cleanup(func() { _ = s.admin.Close() })
	return s
}

func (s *server) info(section string) map[string]string {
	text, err := s.admin.Info(s.tb.Context(), section).Result()
	if err != nil {
		s.tb.Fatal(err)
	}
	info := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok {
			info[key] = value
		}
	}
	return info
}

func (s *server) number(section, field string) float64 {
	x, err := strconv.ParseFloat(s.info(section)[field], 64)
	if err != nil {
		s.tb.Fatalf("INFO %s: %s: %v", section, field, err)
	}
	return x
}

// cpu is the CPU time in seconds that the server's main thread has used, which runs all commands.
func (s *server) cpu() float64 {
	return s.number("cpu", "used_cpu_user_main_thread") + s.number("cpu", "used_cpu_sys_main_thread")
}

// share is the part of a core that the server has used since an instant.
func (s *server) share(used float64, began time.Time) float64 {
	return (s.cpu() - used) / time.Since(began).Seconds()
}

// memory is what the server keeps, in bytes, without its connections.
func (s *server) memory() float64 {
	return s.number("memory", "used_memory") - s.number("memory", "mem_clients_normal")
}

func (s *server) empty() {
	if err := s.admin.FlushAll(s.tb.Context()).Err(); err != nil {
		s.tb.Fatal(err)
	}
}
