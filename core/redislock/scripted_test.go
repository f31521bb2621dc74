package redislock

import (
	"bufio"
	"context"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// What a scripted server does instead of answering.
const (
	hangUp  = ""        // it closes the connection
	silence = "silence" // it reads on, and says nothing
)

// scripted is a server that answers each command as the test says, and writes down what it got.
type scripted struct {
	addr   string
	answer func(words []string) string
	wrap   func(net.Conn) net.Conn // for the clients' ends of connections; nil for none

	mu  sync.Mutex // protects got
	got []request
}

// request is a command, by its words in lower case, and the connection on which it came.
type request struct {
	conn  int
	words []string
}

func serve(t *testing.T, answer func(words []string) string) *scripted {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{addr: l.Addr().String(), answer: answer}
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { _ = l.Close() })
	all.Go(func() {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(t.Context(), func() { _ = conn.Close() })
			all.Go(func() {
				defer stop()
				s.talk(conn, n)
			})
		}
	})
	return s
}

func (s *scripted) talk(conn net.Conn, n int) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for {
		words, err := readWords(r)
		if err != nil {
			return
		}
		answer := "-ERR unknown command\r\n"
		if !slices.Contains([]string{"hello", "client", "command"}, words[0]) { // of the client's own
			s.mu.Lock()
			s.got = append(s.got, request{n, words})
			s.mu.Unlock()
			answer = s.answer(words)
		}
		switch answer {
		case hangUp:
			return
		case silence:
		default:
			if _, err := io.WriteString(conn, answer); err != nil {
				return
			}
		}
	}
}

// requests are those whose first word is the given one.
func (s *scripted) requests(first string) (found []request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.got {
		if r.words[0] == first {
			found = append(found, r)
		}
	}
	return found
}

// connections is how many have been used.
func (s *scripted) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := make(map[int]bool)
	for _, r := range s.got {
		used[r.conn] = true
	}
	return len(used)
}

// readWords reads one command.
func readWords(r *bufio.Reader) ([]string, error) {
	count := func(mark string) (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, mark)))
	}
	n, err := count("*")
	if err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		size, err := count("$")
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(r, word); err != nil {
			return nil, err
		}
		words[i] = strings.ToLower(string(word[:size]))
	}
	return words, nil
}

// hasty are a client's options with which it would repeat a command often, and soon.
func hasty(addr string) *redis.Options {
	return &redis.Options{
		Addr: addr, Protocol: 2, ReadTimeout: 100 * time.Millisecond, DialerRetries: 1,
		MaxRetries: 3, MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 2 * time.Millisecond,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

func (s *scripted) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil && s.wrap != nil {
		conn = s.wrap(conn)
	}
	return conn, err
}

func (s *scripted) plain(t *testing.T) *redis.Client {
	t.Helper()
	o := hasty(s.addr)
	o.Dialer = s.dial
	return opened(t, redis.NewClient(o))
}

// cluster is a client for which the server is the only master.
func (s *scripted) cluster(t *testing.T) *redis.ClusterClient {
	t.Helper()
	o := hasty(s.addr)
	return opened(t, redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: s.addr}}}}, nil
		},
		Dialer:   s.dial,
		Protocol: o.Protocol, ReadTimeout: o.ReadTimeout, DialerRetries: o.DialerRetries,
		MaxRedirects: 3, MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		MaintNotificationsConfig: o.MaintNotificationsConfig,
	}))
}

func opened[C io.Closer](t *testing.T, client C) C {
	t.Helper()
	t.Cleanup(func() { _ = client.Close() })
	return client
}
