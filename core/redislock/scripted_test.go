package redislock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// What a scripted server does instead of answering.
const (
	silence = ""        // it reads on, and says nothing
	hangUp  = "hang up" // it closes the connection, behind what stands before this
)

// scripted is a server that answers each command as the test says, and writes down what it got.
type scripted struct {
	*server.Server
	addr string

	mu  sync.Mutex // protects got
	got [][]string // commands, their first word in lower case
}

func serve(t testing.TB, answer func(words []string) string) *scripted {
	t.Helper()
	at, err := server.NewServer("127.0.0.1:0")
	ok(t, err)
	t.Cleanup(at.Close)
	s := &scripted{Server: at, addr: at.Addr().String()}
	s.says(answer)
	return s
}

// says changes the answers. Clients begin as at an old server, which does not know their first commands.
func (s *scripted) says(answer func(words []string) string) {
	s.SetPreHook(func(to *server.Peer, command string, args ...string) bool {
		switch command {
		case "HELLO", "CLIENT":
			return false
		case "COMMAND":
			to.WriteLen(0)
			return true
		}
		words := append([]string{strings.ToLower(command)}, args...)
		s.mu.Lock()
		s.got = append(s.got, words)
		s.mu.Unlock()
		text, over := strings.CutSuffix(answer(words), hangUp)
		to.WriteRaw(text)
		if over {
			to.Close()
		}
		return true
	})
}

// requests are those whose first word is one of some.
func (s *scripted) requests(first ...string) (found [][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, words := range s.got {
		if slices.Contains(first, words[0]) {
			found = append(found, words)
		}
	}
	return found
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func oneLine(text string) string { return strings.NewReplacer("\r", " ", "\n", " ").Replace(text) }

// lenient lets subscriptions begin, and leaves what counts to answer.
func lenient(answer func(words []string) string) func(words []string) string {
	return func(words []string) string {
		switch words[0] {
		case "subscribe", "ssubscribe":
			return "*3\r\n" + bulk(words[0]) + bulk(words[1]) + ":1\r\n"
		default:
			return answer(words)
		}
	}
}

// hasty are a client's options with which it would repeat a command often, and soon.
func hasty(addr string) *redis.Options {
	return &redis.Options{ // a pool that is as full of failed dials dials once a second only, and is 10 for a processor by default
		Addr: addr, Protocol: 2, PoolSize: 100, ReadTimeout: 500 * time.Millisecond, DialerRetries: 1,
		MaxRetries: 3, MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 2 * time.Millisecond,
	}
}

// cluster is a client for which the server is the only master.
func (s *scripted) cluster(t testing.TB) *redis.ClusterClient {
	t.Helper()
	return s.clusterOf(t, hasty(s.addr))
}

func (s *scripted) clusterOf(t testing.TB, o *redis.Options) *redis.ClusterClient {
	t.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: s.addr}}}}, nil
		},
		Protocol: o.Protocol, ReadTimeout: o.ReadTimeout, DialerRetries: o.DialerRetries, MaxRedirects: 3, ContextTimeoutEnabled: true,
		MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff, MaintNotificationsConfig: quiet,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// stores are Stores of every kind at the server.
func (s *scripted) stores(t testing.TB, opts ...redislock.Option) map[string]driver.Driver {
	t.Helper()
	return s.storesOf(t, func(*redis.Options) {}, opts...)
}

// storesOf are those of clients with some options.
func (s *scripted) storesOf(t testing.TB, set func(o *redis.Options), opts ...redislock.Option) map[string]driver.Driver {
	t.Helper()
	o := hasty(s.addr)
	set(o)
	rdb, cluster := dial(t, o), s.clusterOf(t, o)
	and := func(more redislock.Option) []redislock.Option { return append(slices.Clone(opts), more) }
	replicas := redislock.WithReplicas(1, time.Millisecond)
	all := map[string]driver.Driver{
		"scripts": redislock.New(rdb, opts...), "by slots": redislock.BySlots(redislock.New(rdb, opts...)),
		"replicas":  redislock.New(rdb, and(replicas)...),
		"a cluster": redislock.New(cluster, opts...), "a cluster's replicas": redislock.New(cluster, and(replicas)...),
	}
	t.Cleanup(func() {
		for _, s := range all {
			if idle, ok := s.(driver.Closer); ok {
				_ = idle.Close(context.WithoutCancel(t.Context())) // nobody answers any more
			}
		}
	})
	return all
}
