package redislock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// WithReplicas makes a grant or a renewal count only once n replicas have acknowledged it,
// and waits up to timeout for that, but not longer than what the attempt has left. By
// default, and with n of 0, the master's word is enough. n must not be negative, and timeout
// be a millisecond at least; of a repeat the last one counts.
//
// What is not acknowledged in time is an unknown outcome: an acquire is tried again within
// its bound and then given back, a renewal is tried again until the lease ends. So a master
// that is cut off from its replicas grants nothing, and a failover to one of the n loses no
// lease; to another replica it may. Releases and checks do not wait.
//
// While fewer than n replicas follow, the lock service is unavailable. A command that shares
// its round trip waits with the others. The client's ReadTimeout must be above timeout.
//
// See WAIT in the manual of Redis for what an acknowledgement is: the replica has the data in
// its memory, not on its disk.
func WithReplicas(n int, timeout time.Duration) Option {
	return optionFunc(func(b *base) { b.replicas = replicas{n, timeout} })
}

// replicas are those that have to acknowledge a grant or a renewal.
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

// waitSlack is by how much a server may miss the end of a WAIT: it looks ten times a second.
const waitSlack = 150 * time.Millisecond

// wait puts into a pipeline what waits for all that the same connection has written.
func (r replicas) wait(ctx context.Context, pipe redis.Pipeliner) *redis.Cmd {
	bound := r.timeout
	if deadline, ok := ctx.Deadline(); ok {
		bound = min(bound, time.Until(deadline)-waitSlack) // to hear of it before ctx ends
	}
	ack := redis.NewCmd(ctx, "wait", r.n, max(1, bound.Milliseconds())) // 0 would be for ever
	_ = pipe.Process(ctx, once{ack})                                    // only puts it there
	return ack
}

// heard is nil if enough have acknowledged.
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

// tooFew is an error that leaves open what becomes of the command, which has its reply.
type tooFew string

func (e tooFew) Error() string { return string(e) }

// send sends one command, and waits for the replicas if it is a lasting one: the reply then
// comes with an error if they do not answer.
func (r replicas) send(ctx context.Context, rdb redis.UniversalClient, c *command, cmd *redis.Cmd) (any, error) {
	if r.n == 0 || !c.lasting {
		_ = rdb.Process(ctx, private{once{cmd}}) // the same error as below
		return cmd.Result()
	}
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return r.on(ctx, rdb.Pipeline(), cmd)
	}
	return r.toMaster(ctx, cluster, c, cmd)
}

func (r replicas) on(ctx context.Context, pipe redis.Pipeliner, cmd *redis.Cmd) (any, error) {
	_ = pipe.Process(ctx, private{once{cmd}}) // only puts it there
	ack := r.wait(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each command has the error too
	reply, err := cmd.Result()
	if err == nil {
		err = r.heard(ack)
	}
	return reply, err
}

// toMaster sends a command and WAIT to one node of a cluster, on one connection: the Cluster
// client would send WAIT to any node.
func (r replicas) toMaster(ctx context.Context, rdb *redis.ClusterClient, c *command, cmd *redis.Cmd) (any, error) {
	const redirects = 3
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
		rdb.ReloadState(ctx)
		if master, err = nodeAt(ctx, rdb, addr); err != nil || master == nil {
			return nil, cmd.Err()
		}
		cmd.SetErr(nil)
		if asking {
			pipe := master.Pipeline()
			_ = pipe.Process(ctx, redis.NewCmd(ctx, "asking"))
			return r.on(ctx, pipe, cmd)
		}
	}
	return cmd.Result()
}

// redirect reads MOVED slot addr, and ASK slot addr.
func redirect(err error) (addr string, asking bool) {
	asking = redis.HasErrorPrefix(err, "ASK")
	if !asking && !redis.HasErrorPrefix(err, "MOVED") {
		return "", false
	}
	parts := strings.Fields(err.Error())
	return parts[len(parts)-1], asking
}

// nodeAt is the master with an address, or nil.
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
