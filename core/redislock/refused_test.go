package redislock_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core"
)

// A server that is not ready says so to every command. None of that is an answer to who has
// the name.
func TestAServerThatIsNotReadyIsUnavailableAndNeverHeld(t *testing.T) {
	t.Parallel()
	for _, says := range []string{
		"LOADING Redis is loading the dataset in memory",
		"ERR max number of clients reached",
		"CLUSTERDOWN The cluster is down",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"BUSY Redis is busy running a script.",
		"NOREPLICAS Not enough good replicas to write.",
	} {
		t.Run(strings.Fields(says)[0], func(t *testing.T) {
			t.Parallel()
			rdb := redis.NewClient(&redis.Options{
				Addr: refuser(t, says), Protocol: 2,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			t.Cleanup(func() { _ = rdb.Close() })
			_, err := locker(t, rdb).TryAcquire(t.Context(), "name")
			is(t, err, core.ErrUnavailable)
		})
	}
}

// refuser answers every command with an error, once a client has introduced itself.
func refuser(t *testing.T, says string) (addr string) {
	t.Helper()
	return accept(t, func(conn net.Conn) { refuse(conn, says) })
}

// accept has talk serve whoever comes. What go-redis leaves open ends with the test.
func accept(t *testing.T, talk func(net.Conn)) (addr string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	ok(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(t.Context(), func() { _ = conn.Close() })
			go talk(conn)
		}
	}()
	return l.Addr().String()
}

// pipes dials whoever talks at the other end. What go-redis leaves open ends with the test.
func pipes(tb testing.TB, talk func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	tb.Helper()
	open, end := context.WithCancel(context.Background())
	tb.Cleanup(end)
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		context.AfterFunc(open, func() { _ = theirs.Close() })
		go talk(theirs)
		return ours, nil
	}
}

func refuse(conn net.Conn, says string) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for {
		word, err := command(r)
		if err != nil {
			return
		}
		answer := "-" + says
		if word == "client" || word == "hello" {
			answer = "-ERR unknown command" // as an old server: the client goes on without
		}
		if _, err := io.WriteString(conn, answer+"\r\n"); err != nil {
			return
		}
	}
}

// command reads one, and returns its first word.
func command(r *bufio.Reader) (word string, err error) {
	args, err := arguments(r)
	if err != nil {
		return "", err
	}
	return strings.ToLower(args[0]), nil
}
