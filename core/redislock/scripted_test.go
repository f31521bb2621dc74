package redislock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// What a scripted server does instead of answering.
const (
	hangUp  = ""        // it closes the connection
	silence = "silence" // it reads on, and says nothing
)

// scripted is a server that answers each command as the test says, and writes down what it got.
type scripted struct {
	addr string

	mu     sync.Mutex // protects what follows
	answer func(words []string) string
	got    []request
}

// request is a command, its first word in lower case, and the connection on which it came.
type request struct {
	conn  int
	words []string
}

func serve(t testing.TB, answer func(words []string) string) *scripted {
	t.Helper()
	s := &scripted{answer: answer}
	s.addr = accept(t, s.talk)
	return s
}

// accept has talk serve whoever comes. What go-redis leaves open ends with the test.
func accept(t testing.TB, talk func(conn net.Conn, n int)) (addr string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	ok(t, err)
	open, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); end(); all.Wait() })
	all.Go(func() {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(open, func() { _ = conn.Close() })
			all.Go(func() {
				defer stop()
				defer func() { _ = conn.Close() }()
				talk(conn, n)
			})
		}
	})
	return l.Addr().String()
}

func (s *scripted) talk(conn net.Conn, n int) {
	r := bufio.NewReader(conn)
	for {
		words, err := arguments(r)
		if err != nil {
			return
		}
		switch answer := s.reply(n, words); answer {
		case hangUp:
			return
		case silence:
		default:
			text, cut := strings.CutSuffix(answer, silence)
			if _, err := io.WriteString(conn, text); err != nil || cut {
				return
			}
		}
	}
}

// reply lets clients begin as at an old server.
func (s *scripted) reply(conn int, words []string) string {
	switch words[0] {
	case "hello", "client":
		return "-ERR unknown command\r\n"
	case "command":
		return "*0\r\n"
	}
	s.mu.Lock()
	s.got = append(s.got, request{conn, words})
	answer := s.answer
	s.mu.Unlock()
	return answer(words)
}

// says changes the answers.
func (s *scripted) says(answer func(words []string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// requests are those whose first word is one of some.
func (s *scripted) requests(first ...string) (found []request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.got {
		if slices.Contains(first, r.words[0]) {
			found = append(found, r)
		}
	}
	return found
}

// arguments reads one command.
func arguments(r *bufio.Reader) (args []string, err error) {
	number := func(kind string) (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, kind)))
	}
	n, err := number("*")
	for range n {
		length, err := number("$")
		if err != nil {
			return nil, err
		}
		arg := make([]byte, length+len("\r\n"))
		if _, err := io.ReadFull(r, arg); err != nil {
			return nil, err
		}
		args = append(args, string(arg[:length]))
	}
	if err == nil && len(args) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	if err == nil {
		args[0] = strings.ToLower(args[0])
	}
	return args, err
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
