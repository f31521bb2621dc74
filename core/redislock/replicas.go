package redislock

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// WithReplicas makes a grant or a renewal count only after n replicas have acknowledged it. It
// waits for that up to timeout, but no longer than the attempt has left. The default, n = 0, trusts
// the master alone. n must not be negative, and timeout must be at least a millisecond. The last
// one wins.
//
// A missing acknowledgement is an unknown outcome. An acquire is tried again within its bound, and
// then given back. A renewal is tried again until the lease ends. So a master that is cut off from
// its replicas grants nothing. A failover to one of the n replicas loses no lease; a failover to
// another replica may. Releases and checks do not wait.
//
// While fewer than n replicas follow, the lock service is unavailable. Commands that share a round
// trip wait together. The client's ReadTimeout must be larger than timeout.
//
// An acknowledgement means that the replica has the data in its memory, not on its disk: see WAIT
// in the manual of Redis.
func WithReplicas(n int, timeout time.Duration) Option {
	return optionFunc(func(s *Store) { s.replicas = replicas{n, timeout} })
}

// replicas says how many replicas have to acknowledge a grant or a renewal, and how soon.
type replicas struct {
	n       int
	timeout time.Duration
}

func (r replicas) validate() error {
	if r.n < 0 || r.n > 0 && r.timeout < time.Millisecond {
		return fmt.Errorf("redislock: WithReplicas(%d, %s): a negative number, or less than a millisecond", r.n, r.timeout)
	}
	return nil
}

// waitSlack is how late a server may end a WAIT: it looks only ten times a second.
const waitSlack = 150 * time.Millisecond

// wait puts a WAIT into a batch. It waits for everything that the same connection has written.
func (r replicas) wait(ctx context.Context, trip *batch) *redis.Cmd {
	bound := r.timeout
	if deadline, ok := ctx.Deadline(); ok {
		bound = min(bound, time.Until(deadline)-waitSlack) // so that the answer comes before ctx ends
	}
	ack := redis.NewCmd(ctx, "wait", r.n, max(1, bound.Milliseconds())) // 0 would mean for ever
	trip.put(ctx, ack)
	return ack
}

// heard returns nil if enough replicas have acknowledged.
func (r replicas) heard(ack *redis.Cmd) error {
	n, err := ack.Int()
	if err != nil {
		return fmt.Errorf("redislock: waiting for replicas: %s", err) //nolint:errorlint // the script was executed: not the server's word on it
	}
	if n < r.n {
		return tooFew(fmt.Sprintf("redislock: %d of %d replicas have acknowledged", n, r.n))
	}
	return nil
}

// tooFew says that replicas are missing. The command has its reply, but its outcome is open.
type tooFew string

func (e tooFew) Error() string { return string(e) }

// send sends one command, and waits for the replicas if the command is a lasting one. If they do not
// answer, the reply comes together with an error.
func (r replicas) send(ctx context.Context, rdb redis.UniversalClient, c *command, cmd *redis.Cmd) (any, error) {
	if c.second {
		return second(ctx, rdb, cmd)
	}
	if r.n == 0 || !c.lasting {
		_ = rdb.Process(ctx, private{once: once{cmd}}) // the next line has the same error
		return cmd.Result()
	}
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return r.on(ctx, rdb.Pipeline(), cmd)
	}
	return r.toMaster(ctx, cluster, c, cmd)
}

func (r replicas) on(ctx context.Context, pipe redis.Pipeliner, cmd *redis.Cmd) (any, error) {
	trip := newBatch(pipe)
	trip.put(ctx, cmd)
	ack := r.wait(ctx, trip)
	trip.exec(ctx)
	reply, err := cmd.Result()
	if err == nil {
		err = r.heard(ack)
	}
	return reply, err
}

// toMaster sends a command and a WAIT to one node of a cluster, on one connection. The Cluster
// client would send the WAIT to any node.
func (r replicas) toMaster(ctx context.Context, rdb *redis.ClusterClient, c *command, cmd *redis.Cmd) (any, error) {
	const redirects = 3
	var moved error
	master, err := rdb.MasterForKey(ctx, c.parts[0])
	for range redirects {
		if err != nil {
			return nil, err
		}
		reply, err := r.on(ctx, master.Pipeline(), cmd)
		addr, asking := redirect(err)
		if addr == "" {
			return reply, err
		}
		moved = err
		rdb.ReloadState(ctx)
		if master, err = nodeAt(ctx, rdb, addr); err != nil || master == nil {
			return nil, moved
		}
		cmd.SetErr(nil)
		if asking {
			pipe := master.Pipeline()
			_ = pipe.Process(ctx, redis.NewCmd(ctx, "asking"))
			return r.on(ctx, pipe, cmd)
		}
	}
	return nil, moved
}

// redirect reads the errors "MOVED slot addr" and "ASK slot addr". The address may be one of IPv6, without brackets.
func redirect(err error) (addr string, asking bool) {
	asking = says(err, "ASK")
	if !asking && !says(err, "MOVED") {
		return "", false
	}
	parts := strings.Fields(err.Error())
	addr = parts[len(parts)-1]
	if at := strings.LastIndexByte(addr, ':'); at > 0 && strings.Contains(addr[:at], ":") && addr[0] != '[' {
		addr = net.JoinHostPort(addr[:at], addr[at+1:])
	}
	return addr, asking
}

// nodeAt returns the master with an address, or nil.
func nodeAt(ctx context.Context, rdb *redis.ClusterClient, addr string) (node *redis.Client, err error) {
	found := make(chan *redis.Client, 1)
	err = rdb.ForEachMaster(ctx, func(_ context.Context, n *redis.Client) error {
		if n.Options().Addr == addr {
			found <- n
		}
		return nil
	})
	select {
	case node = <-found:
	default:
	}
	return node, err
}
