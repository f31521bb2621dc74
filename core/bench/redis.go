package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

type server struct {
	addr string
	cmd  *exec.Cmd
}

func startRedis() (*server, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	//nolint:gosec // G204: a port number
	cmd := exec.CommandContext(context.Background(), "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("redis-server is needed on PATH (Debian: apt-get install redis-server): %w", err)
	}
	s := &server{addr: "127.0.0.1:" + port, cmd: cmd}
	rdb := client(s.addr)
	defer rdb.Close()
	for range 100 {
		if err = rdb.Ping(context.Background()).Err(); err == nil {
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	return nil, err
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func client(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                     addr,
		PoolSize:                 64,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}
