package redislock

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// listener is a hook that counts the commands that it sees.
type listener struct{ seen *int }

func (listener) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l listener) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		*l.seen++
		return next(ctx, cmd)
	}
}

func (l listener) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		*l.seen += len(cmds)
		return next(ctx, cmds)
	}
}

// Relied on by client.go (punctual), and by what New promises of hooks: the clone that WithTimeout
// makes shares the client's connections, has options of its own, which count from then on, and none
// of the client's hooks, which would see tokens.
func TestPinAClonedClientSharesConnectionsAndNothingElse(t *testing.T) {
	t.Parallel()
	s := serve(t, func([]string) string { return ":1\r\n" })
	rdb := s.plain(t)
	if err := errors.Join(alone(t.Context(), rdb, lockCommand(t.Context())), piped(t.Context(), rdb, lockCommand(t.Context()))); err != nil {
		t.Fatal(err)
	}
	before := *rdb.Options()
	connections := s.connections()
	seen := 0
	rdb.AddHook(listener{&seen})
	clone, ok := punctual(rdb)
	if !ok {
		t.Fatal("no clone")
	}
	rdb.AddHook(listener{&seen})
	for range 3 {
		if err := clone.Process(t.Context(), lockCommand(t.Context())); err != nil {
			t.Error(err)
		}
		if err := piped(t.Context(), clone, lockCommand(t.Context())); err != nil {
			t.Error(err)
		}
		if err := clone.Watch(t.Context(), func(tx *redis.Tx) error { return tx.Process(t.Context(), lockCommand(t.Context())) }, "key"); err != nil {
			t.Error(err)
		}
	}
	if seen != 0 {
		t.Errorf("hooks of the client have seen %d commands", seen)
	}
	if err := rdb.Process(t.Context(), lockCommand(t.Context())); err != nil || seen != 2 {
		t.Errorf("%v; the client's own commands were seen %d times", err, seen)
	}
	if n := s.connections(); n != connections {
		t.Errorf("%d connections, and the client had %d", n, connections)
	}
	if after := *rdb.Options(); after.ContextTimeoutEnabled || after.ReadTimeout != before.ReadTimeout || after.WriteTimeout != before.WriteTimeout {
		t.Errorf("the client's options are %v, %s, %s", after.ContextTimeoutEnabled, after.ReadTimeout, after.WriteTimeout)
	}
}

// Relied on by redislock.go (Capabilities: Punctual), and so by every call that core makes on its
// caller's goroutine: a deadline ends a read of the clone, whatever the client's ReadTimeout.
func TestPinACloneHeedsDeadlines(t *testing.T) {
	t.Parallel()
	for way, call := range map[string]func(ctx context.Context, rdb redis.UniversalClient) error{
		"alone":         func(ctx context.Context, rdb redis.UniversalClient) error { return alone(ctx, rdb, lockCommand(ctx)) },
		"in a pipeline": func(ctx context.Context, rdb redis.UniversalClient) error { return piped(ctx, rdb, lockCommand(ctx)) },
		"in a transaction": func(ctx context.Context, rdb redis.UniversalClient) error {
			return rdb.Watch(ctx, func(tx *redis.Tx) error { return tx.Process(ctx, lockCommand(ctx)) }, "key")
		},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(words []string) string {
				if words[0] == "watch" {
					return "+OK\r\n"
				}
				return silence
			})
			o := hasty(s.addr)
			o.ReadTimeout, o.WriteTimeout = time.Hour, time.Hour
			rdb, _ := punctual(opened(t, redis.NewClient(o)))
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			over := make(chan error, 1)
			go func() { over <- call(ctx, rdb) }()
			select {
			case err := <-over:
				if err == nil {
					t.Error("no error")
				}
			case <-time.After(time.Minute):
				t.Error("it waits for an hour")
			}
		})
	}
}

// Relied on by classify.go, and by what core does after an error: after these kinds nothing can have
// been executed, so that it asks again at once and cleans nothing up; after any other it does.
func TestPinWhichErrorsSayThatNothingWasExecuted(t *testing.T) {
	t.Parallel()
	type kind struct{ dial, timeout, exhausted, closed, answered bool }
	of := func(err error) (k kind) {
		op, ok := errors.AsType[*net.OpError](err)
		k.dial = ok && op.Op == "dial"
		k.timeout, k.exhausted = errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted)
		k.closed = errors.Is(err, redis.ErrClosed)
		_, k.answered = errors.AsType[redis.Error](err)
		return k
	}
	for what, c := range map[string]struct {
		answer string
		client func(t *testing.T, o *redis.Options) *redis.Client // nil for one that is as usual
		want   kind
		sent   int
	}{
		"the dial is refused": {client: func(t *testing.T, o *redis.Options) *redis.Client {
			t.Helper()
			o.Addr = "127.0.0.1:1"
			return opened(t, redis.NewClient(o))
		}, want: kind{dial: true}},
		"the dial takes too long": {client: func(t *testing.T, o *redis.Options) *redis.Client {
			t.Helper()
			o.DialTimeout = time.Millisecond
			o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
			}
			return opened(t, redis.NewClient(o))
		}, want: kind{dial: true}},
		"all connections are in use": {client: func(t *testing.T, o *redis.Options) *redis.Client {
			t.Helper()
			o.PoolSize, o.PoolTimeout = 1, 10*time.Millisecond
			SetNewerOption(o, "PipelinePoolSize", -1)
			return taken(t, redis.NewClient(o))
		}, want: kind{timeout: true}},
		"there may be no more connections": {client: func(t *testing.T, o *redis.Options) *redis.Client {
			t.Helper()
			o.PoolSize, o.MaxActiveConns = 2, 1
			SetNewerOption(o, "PipelinePoolSize", -1)
			return taken(t, redis.NewClient(o))
		}, want: kind{exhausted: true}},
		"the client is closed": {client: func(t *testing.T, o *redis.Options) *redis.Client {
			t.Helper()
			rdb := redis.NewClient(o)
			if err := rdb.Close(); err != nil {
				t.Error(err)
			}
			return rdb
		}, want: kind{closed: true}},
		"an error is answered":  {answer: "-ERR what\r\n", want: kind{answered: true}, sent: 1},
		"OOM":                   {answer: "-OOM command not allowed\r\n", want: kind{answered: true}, sent: 1},
		"NOAUTH":                {answer: "-NOAUTH Authentication required.\r\n", want: kind{answered: true}, sent: 1},
		"NOPERM":                {answer: "-NOPERM this user has no permissions\r\n", want: kind{answered: true}, sent: 1},
		"MOVED":                 {answer: "-MOVED 1 127.0.0.1:1\r\n", want: kind{answered: true}, sent: 1},
		"EXECABORT":             {answer: "-EXECABORT Transaction discarded\r\n", want: kind{answered: true}, sent: 1},
		"the connection breaks": {answer: hangUp, sent: 1},
		"no reply":              {answer: silence, sent: 1},
		"a reply of no kind":    {answer: "what\r\n", sent: 1},
		"a number that is none": {answer: ":what\r\n", sent: 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(words []string) string {
				if words[0] == "ping" {
					return "+PONG\r\n"
				}
				return c.answer
			})
			rdb := s.plain(t)
			if c.client != nil {
				rdb = c.client(t, hasty(s.addr))
			}
			for way, send := range map[string]func(context.Context, pipeliner, redis.Cmder) error{"alone": alone, "piped": piped} {
				before := len(s.requests("evalsha"))
				cmd := lockCommand(t.Context())
				_ = send(t.Context(), rdb, cmd) // as here, the command's own error is looked at
				if got := of(cmd.Err()); cmd.Err() == nil || got != c.want {
					t.Errorf("%s: %v (%T): %+v", way, cmd.Err(), cmd.Err(), got)
				}
				if n := len(s.requests("evalsha")) - before; n != c.sent {
					t.Errorf("%s: %d arrived", way, n)
				}
			}
		})
	}
}

// taken has somebody else use the client's only connection.
func taken(t *testing.T, rdb *redis.Client) *redis.Client {
	t.Helper()
	opened(t, rdb)
	conn := opened(t, rdb.Conn())
	if err := conn.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	return rdb
}
