package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// service is the Redis that keeps the locks and the tasks.
type service struct {
	locks, tasks string                 // addresses; the same one for a server of the user's
	embedded     []*miniredis.Miniredis // none then
	rdb          *redis.Client          // for locks
	queues       *redis.Client          // for tasks
	id           string                 // of this run: it is in all its keys
}

func newService(ctx context.Context, address string) (*service, error) {
	s := &service{locks: address, tasks: address, id: "holdfast-demo-" + strings.ToLower(rand.Text()[:8])}
	if address == "" {
		if err := s.embed(); err != nil {
			return nil, err
		}
	}
	s.rdb, s.queues = dial(s.locks), dial(s.tasks)
	bounded, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := s.rdb.Ping(bounded).Err(); err != nil {
		return nil, fmt.Errorf("no Redis at %s: %w", s.locks, err)
	}
	return s, nil
}

// embed starts one miniredis for the locks and one for the tasks: letting keys expire costs
// it a walk over all keys at each command, and only the locks need that.
func (s *service) embed() error {
	for _, address := range []*string{&s.locks, &s.tasks} {
		m, err := miniredis.Run()
		if err != nil {
			return err
		}
		s.embedded = append(s.embedded, m)
		*address = m.Addr()
	}
	s.embedded[0].ClockTTL(true)
	return nil
}

// dial returns a client for a Redis server. All of the demo's processes use one.
func dial(address string) *redis.Client {
	logging.Disable() // what goes wrong comes back as an error
	return redis.NewClient(&redis.Options{Addr: address, DialTimeout: 2 * time.Second})
}

// prefix is what the keys of a part's locks begin with, and queue what its queue is called.
func (s *service) prefix(part string) string { return s.id + ":" + part + ":" }
func (s *service) queue(part string) string  { return s.id + "-" + part }

func (s *service) String() string {
	if s.embedded != nil {
		return "an embedded miniredis"
	}
	return "Redis at " + s.locks
}

// close leaves nothing of this run on the server.
func (s *service) close(ctx context.Context) error {
	defer s.rdb.Close()
	defer s.queues.Close()
	for _, m := range s.embedded {
		m.Close()
	}
	if s.embedded != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := s.tidy(ctx); err != nil {
		return fmt.Errorf("some keys with %q in their name are left at %s: %w", s.id, s.locks, err)
	}
	return nil
}

func (s *service) tidy(ctx context.Context) error {
	for _, part := range []string{bare, held} {
		if err := s.rdb.SRem(ctx, "asynq:queues", s.queue(part)).Err(); err != nil {
			return err
		}
	}
	// What the queues counted, dedup markers, the counter of fences.
	keys := s.rdb.Scan(ctx, 0, "*"+s.id+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := s.rdb.Unlink(ctx, keys.Val()).Err(); err != nil {
			return err
		}
	}
	return keys.Err()
}
