package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// service is the Redis that keeps the queues and the locks.
type service struct {
	rdb      *redis.Client
	embedded *miniredis.Miniredis // nil with a server of the user's
	id       string               // of this run: it is in all its keys
	queues   []string
}

func newService(ctx context.Context, address string) (*service, error) {
	logging.Disable() // what goes wrong comes back as an error
	s := &service{id: "holdfast-asynq-" + strings.ToLower(rand.Text()[:8])}
	if address == "" {
		m, err := miniredis.Run()
		if err != nil {
			return nil, err
		}
		m.ClockTTL(true)
		s.embedded, address = m, m.Addr()
	}
	s.rdb = redis.NewClient(&redis.Options{Addr: address, DialTimeout: 2 * time.Second})
	bounded, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := s.rdb.Ping(bounded).Err(); err != nil {
		return nil, fmt.Errorf("no Redis at %s: %w", address, err)
	}
	return s, nil
}

// locks is what each process of a fleet makes for itself.
func (s *service) locks() (*core.Locker, error) {
	return core.New(redislock.New(s.rdb, redislock.WithPrefix(s.id+":")))
}

// queue names a queue of this run.
func (s *service) queue(part string) string {
	name := s.id + "-" + part
	s.queues = append(s.queues, name)
	return name
}

// serve starts a server that looks at its queue more often than by default, for those who
// watch.
func (s *service) serve(cfg asynq.Config, queue string, h asynq.Handler) (*asynq.Server, error) {
	cfg.Queues = map[string]int{queue: 1}
	cfg.TaskCheckInterval = 50 * time.Millisecond
	cfg.DelayedTaskCheckInterval = 100 * time.Millisecond
	cfg.LogLevel = asynq.FatalLevel
	srv := asynq.NewServerFromRedisClient(s.rdb, cfg)
	if err := srv.Start(h); err != nil {
		return nil, err
	}
	return srv, nil
}

// close leaves nothing of this run on the server.
func (s *service) close(ctx context.Context) error {
	defer s.rdb.Close()
	if s.embedded != nil {
		s.embedded.Close()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var errs []error
	for _, queue := range s.queues {
		errs = append(errs, s.rdb.SRem(ctx, "asynq:queues", queue).Err())
	}
	keys := s.rdb.Scan(ctx, 0, "*"+s.id+"*", 1000).Iterator()
	for keys.Next(ctx) {
		errs = append(errs, s.rdb.Unlink(ctx, keys.Val()).Err())
	}
	return errors.Join(append(errs, keys.Err())...)
}
