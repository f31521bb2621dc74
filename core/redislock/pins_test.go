package redislock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// The tests of these files pin what this package relies on inside go-redis, some of which nobody
// has promised. One that fails after an upgrade says where to look.

// lockCommand is a command as command.as makes one.
func lockCommand(ctx context.Context) private {
	cmd := redis.NewCmd(ctx, "evalsha", "sha", 1, "key")
	cmd.SetFirstKeyPos(3)
	return private{once: once{cmd}}
}

// pipeliner is what a plain client and one of a Cluster have in common here.
type pipeliner interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

func alone(ctx context.Context, rdb pipeliner, cmd redis.Cmder) error { return rdb.Process(ctx, cmd) }

func piped(ctx context.Context, rdb pipeliner, cmd redis.Cmder) error {
	pipe := rdb.Pipeline()
	_ = pipe.Process(ctx, cmd) // only puts it there
	_, err := pipe.Exec(ctx)
	return err
}

// eachWay runs f for each way in which this package sends a command: replicas.send, share.send,
// and for a Cluster toCluster and pipelined.
func eachWay(t *testing.T, f func(t *testing.T, client func(t *testing.T, s *scripted) pipeliner, send func(context.Context, pipeliner, redis.Cmder) error)) {
	t.Helper()
	plain := func(t *testing.T, s *scripted) pipeliner { t.Helper(); return s.plain(t) }
	cluster := func(t *testing.T, s *scripted) pipeliner { t.Helper(); return s.cluster(t) }
	t.Run("alone", func(t *testing.T) { t.Parallel(); f(t, plain, alone) })
	t.Run("in a pipeline", func(t *testing.T) { t.Parallel(); f(t, plain, piped) })
	t.Run("to a Cluster", func(t *testing.T) { t.Parallel(); f(t, cluster, alone) })
	t.Run("in a Cluster's pipeline", func(t *testing.T) { t.Parallel(); f(t, cluster, piped) })
}

// Relied on by all that sends (command.go: once): a lost reply to an acquire must come back to core,
// which asks again with what it knows, and not be sent again by the client, which would be told that
// the name is held, by ourselves.
//
// A Cluster client asks again where a node says READONLY, whatever NoRetry says: that node has
// executed nothing.
func TestPinWhatMustNotBeRepeatedIsSentOnce(t *testing.T) {
	t.Parallel()
	for what, answer := range map[string]string{
		"the connection breaks": hangUp,
		"no reply":              silence,
		"half a reply":          "$5\r\nab" + hangUp,
		"LOADING":               "-LOADING Redis is loading the dataset in memory\r\n",
		"MASTERDOWN":            "-MASTERDOWN Link with MASTER is down\r\n",
		"CLUSTERDOWN":           "-CLUSTERDOWN The cluster is down\r\n",
		"TRYAGAIN":              "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
		"NOREPLICAS":            "-NOREPLICAS Not enough good replicas to write.\r\n",
		"max clients":           "-ERR max number of clients reached\r\n",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			eachWay(t, func(t *testing.T, client func(*testing.T, *scripted) pipeliner, send func(context.Context, pipeliner, redis.Cmder) error) {
				s := serve(t, func([]string) string { return answer })
				err := send(t.Context(), client(t, s), lockCommand(t.Context()))
				if n := len(s.requests("evalsha")); n != 1 || err == nil {
					t.Errorf("sent %d times: %v", n, err)
				}
			})
		})
	}
}

// Relied on by cluster.go (toCluster, renewTogether): NoRetry does not keep a Cluster client from
// following a slot to its node.
func TestPinWhatMustNotBeRepeatedFollowsItsSlot(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"MOVED", "ASK"} {
		for way, send := range map[string]func(context.Context, pipeliner, redis.Cmder) error{"alone": alone, "in a pipeline": piped} {
			t.Run(word+" "+way, func(t *testing.T) {
				t.Parallel()
				there := serve(t, func(words []string) string {
					if words[0] == "asking" {
						return "+OK\r\n"
					}
					return ":1\r\n"
				})
				here := serve(t, func([]string) string { return fmt.Sprintf("-%s 12539 %s\r\n", word, there.addr) })
				cmd := lockCommand(t.Context())
				err := send(t.Context(), here.cluster(t), cmd)
				if n := len(there.requests("evalsha")); err != nil || n != 1 || cmd.Val() != int64(1) {
					t.Errorf("%v, %v; arrived %d times", cmd.Val(), err, n)
				}
				if n := len(here.requests("evalsha")); n != 1 {
					t.Errorf("asked for %d times where it was", n)
				}
				if n := len(there.requests("asking")); (n > 0) != (word == "ASK") {
					t.Errorf("%d times ASKING", n)
				}
			})
		}
	}
}

// Relied on by transaction.go: a transaction whose connection breaks ends with an error, and is not sent
// again on a new connection, on which nothing is watched, and where it would overwrite the lock of
// whoever was granted the name meanwhile.
func TestPinATransactionNeverRunsWithoutItsWatch(t *testing.T) {
	t.Parallel()
	for _, breaks := range []string{"watch", "get", "write", "multi", "set", "exec"} {
		for kind, master := range map[string]func(t *testing.T, s *scripted) *redis.Client{
			"plain": func(t *testing.T, s *scripted) *redis.Client { t.Helper(); return s.plain(t) },
			"a Cluster's master": func(t *testing.T, s *scripted) *redis.Client {
				t.Helper()
				node, err := s.cluster(t).MasterForKey(t.Context(), "key")
				if err != nil {
					t.Fatal(err)
				}
				return node
			},
		} {
			t.Run(breaks+" "+kind, func(t *testing.T) {
				t.Parallel()
				s := serve(t, func(words []string) string {
					switch words[0] {
					case breaks:
						return hangUp
					case "get":
						return "$-1\r\n"
					case "set":
						return "+QUEUED\r\n"
					case "exec":
						return "*1\r\n+OK\r\n"
					default:
						return "+OK\r\n"
					}
				})
				if breaks == "write" {
					first := new(sync.Once)
					s.wrap = func(conn net.Conn) net.Conn { return torn{conn, first} }
				}
				err := master(t, s).Watch(t.Context(), func(tx *redis.Tx) error {
					read := tx.Pipeline()
					read.Get(t.Context(), "key")
					if _, err := read.Exec(t.Context()); err != nil && !errors.Is(err, redis.Nil) {
						return err
					}
					pipe := tx.TxPipeline()
					_ = pipe.Process(t.Context(), private{once: once{redis.NewCmd(t.Context(), "set", "key", "value")}})
					_, err := pipe.Exec(t.Context())
					return err
				}, "key")
				if _, answered := errors.AsType[redis.Error](err); err == nil || answered {
					t.Errorf("%v", err)
				}
				for _, multi := range s.requests("multi") {
					if !s.watched(multi.conn) {
						t.Error("MULTI on a connection without WATCH")
					}
				}
				want := 1
				if breaks == "watch" || breaks == "get" || breaks == "write" {
					want = 0
				}
				if n := len(s.requests("multi")); n != want {
					t.Errorf("%d transactions, not %d", n, want)
				}
			})
		}
	}
}

// torn is a connection that breaks as the first transaction of all is written.
type torn struct {
	net.Conn
	first *sync.Once
}

func (c torn) Write(p []byte) (n int, err error) {
	if bytes.Contains(p, []byte("multi")) {
		c.first.Do(func() { err = errors.Join(io.EOF, c.Close()) }) // with what a client repeats for
	}
	if err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (s *scripted) watched(conn int) bool {
	for _, r := range s.requests("watch") {
		if r.conn == conn {
			return true
		}
	}
	return false
}
