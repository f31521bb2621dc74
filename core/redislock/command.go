package redislock

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// command is one call of a script.
type command struct {
	script *script
	keys   int      // how many of parts are keys
	parts  []string // the keys, then the arguments
	merger *merger  // nil if it cannot be merged with others of its kind and group; else plain takes the place of parts
	group  int      // of the layout
	plain  plain
	least  int // how many of the keys it needs while their slot moves, if it can do without the others

	lasting bool // a grant or a renewal, which replicas may have to acknowledge
	tells   bool // a release, of which somebody who waits is told
	second  bool // it is sent by second
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func millis(d time.Duration) string { return decimal(d.Milliseconds()) }

// once is a command that go-redis sends exactly once. If the client sent an acquire again by
// itself, it would report our own lock as somebody else's.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// evalsha names the script by its hash; eval sends the whole script.
func (c *command) evalsha(ctx context.Context) *redis.Cmd { return c.as(ctx, "evalsha", c.script.sha) }
func (c *command) eval(ctx context.Context) *redis.Cmd    { return c.as(ctx, "eval", c.script.source) }

func (c *command) as(ctx context.Context, verb, script string) *redis.Cmd {
	line := make([]any, 3, 3+len(c.parts))
	line[0], line[1], line[2] = verb, script, c.keys
	for i := range c.parts {
		line = append(line, &c.parts[i]) // a string in an interface would be an allocation
	}
	const firstKey = 3
	line[firstKey] = c.parts[0] // Cluster looks for a string here
	cmd := redis.NewCmd(ctx, line...)
	cmd.SetFirstKeyPos(firstKey)
	return cmd
}

// alone sends the command by itself. If the server does not know the script, it sends the command
// again with the whole script: the server's answer proves that nothing was executed.
func (c *command) alone(ctx context.Context, rdb redis.UniversalClient, r replicas) (any, error) {
	reply, err := r.send(ctx, rdb, c, c.evalsha(ctx))
	if !says(err, "NOSCRIPT") {
		return reply, err
	}
	return c.whole(ctx, rdb, r)
}

func (c *command) whole(ctx context.Context, rdb redis.UniversalClient, r replicas) (any, error) {
	return r.send(ctx, rdb, c, c.eval(ctx))
}

// second sends a command behind a PING, in one round trip. Redis writes first to the client whose first answer came last. With the PING, that is
// whoever the command tells of its turn, and not we: waking one process delays the other one.
//
// From 9.23 on, go-redis keeps a pool of its own for pipelines, which may have to dial first. A release must not wait for that, so it
// takes a connection as single commands do.
func second(ctx context.Context, rdb redis.UniversalClient, cmd *redis.Cmd) (any, error) {
	pipe := rdb.Pipeline()
	if client, ok := rdb.(*redis.Client); ok {
		conn := client.Conn()
		defer func() { _ = conn.Close() }()
		pipe = conn.Pipeline()
	}
	trip := newBatch(pipe)
	trip.put(ctx, redis.NewCmd(ctx, "ping"))
	trip.put(ctx, cmd)
	trip.exec(ctx)
	return cmd.Result()
}

// run sends a command. It marks an error if nothing can have been executed. With replicas, a reply
// may come together with an error that says that replicas are missing.
func (s *Store) run(ctx context.Context, c command) (reply any, err error) {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return nil, err
	}
	if rdb, ok := s.rdb.(*redis.ClusterClient); ok {
		reply, err = toCluster(ctx, rdb, s.spelled(c), s.replicas)
	} else if reply, err = s.send(ctx, c); isMoving(err) {
		c = s.spelled(c)
		reply, err = s.sendBare(ctx, c.bare())
	} else if says(err, "MOVED") { // a plain client never follows
		err = driver.Refused(err)
	}
	if err != nil {
		c = s.spelled(c)
	}
	s.leaveReplica(ctx, err)
	return reply, c.classify(err)
}

// sendBare sends a command until its slot has moved.
func (s *Store) sendBare(ctx context.Context, c command) (any, error) {
	return whileMoving(ctx, func() (any, error) { return s.send(ctx, c) })
}

// send sends a command to the one server there is.
func (s *Store) send(ctx context.Context, c command) (any, error) {
	if s.share != nil {
		return s.share.Do(ctx, c)
	}
	return s.alone(ctx, c)
}
