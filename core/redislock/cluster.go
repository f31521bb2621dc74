package redislock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Pauses between the sendings of a command whose keys are being moved to another node.
const (
	firstMove = 2 * time.Millisecond
	lastMove  = 50 * time.Millisecond
)

// whileMoving sends a command again while the node says that only some of its keys have been
// moved. That answer proves that nothing was executed. It stops early enough to return the
// answer before ctx ends.
func whileMoving[T any](ctx context.Context, send func() (T, error)) (T, error) {
	for pause := firstMove; ; pause = min(2*pause, lastMove) {
		reply, err := send()
		if !isMoving(err) {
			return reply, err
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 2*pause {
			return reply, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return reply, err
		}
	}
}

// toCluster sends a command through a Cluster client. If no node answers, it makes the client
// look for the nodes again. By itself, the client does that every ten seconds, and when a node
// sends it to another one. A dead node does not.
func toCluster(ctx context.Context, rdb *redis.ClusterClient, c command, r replicas) (any, error) {
	reply, err := whileMoving(ctx, func() (any, error) {
		reply, err := c.alone(ctx, rdb, r)
		if c.least > 0 && isMoving(err) {
			c = c.bare()
			return c.alone(ctx, rdb, r)
		}
		return reply, err
	})
	look(ctx, rdb, err)
	return reply, err
}

// isMoving says whether a command was refused since its slot is being moved to another node. The check
// of the declared keys says TRYAGAIN, the check of a command in a script that a key is not local.
func isMoving(err error) bool {
	return says(err, "TRYAGAIN") || says(err, "Script attempted to access a non local key") || says(err, "Attempted to access a non local key")
}

// bare is c with as few keys as it needs. With a single key, it is executed while the slot moves.
func (c *command) bare() command {
	if c.least == 0 {
		return *c
	}
	bare := *c
	bare.keys, bare.least = c.least, 0
	bare.parts = slices.Concat(c.parts[:c.least], c.parts[c.keys:])
	return bare
}

func look(ctx context.Context, rdb *redis.ClusterClient, err error) {
	if _, answered := errors.AsType[redis.Error](err); err != nil && !answered {
		rdb.ReloadState(ctx) // in the background, and once for many
	}
}

// errMute is the timeout of a node that has not answered. Waiting longer would have ended in one.
var errMute = fmt.Errorf("redislock: the node has not answered: %w", os.ErrDeadlineExceeded)

// renewInCluster renews each claim, of whatever kind, by a command of its own. That of an exclusive claim
// names one key, so it goes on while slots move. Commands for the same master share a round trip. A node
// that does not answer costs the claims of other nodes time, and nothing else: core waits, and lets other
// batches overtake.
func (s *Store) renewInCluster(ctx context.Context, rdb *redis.ClusterClient, claims []driver.Claim) []error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	ctx, cancel := context.WithTimeout(ctx, mostOf(ctx)) // core may leave at ctx's end, with no answer at all
	defer cancel()
	errs := make([]error, len(claims))
	parts := make(map[*redis.Client][]int, 3)
	for i, c := range claims {
		master, err := rdb.MasterForKey(ctx, s.lockKey(c.Name))
		if errs[i] = err; err == nil {
			parts[master] = append(parts[master], i)
		}
	}
	answers := make(chan renewals, len(parts)) // nobody may be left to receive
	for master, part := range parts {
		mine := make([]driver.Claim, len(part))
		for i, at := range part {
			mine[i] = claims[at]
			errs[at] = errMute
		}
		go func() { answers <- renewals{part, s.renewAt(ctx, rdb, master, mine)} }()
	}
	for range parts {
		select {
		case r := <-answers:
			for i, at := range r.part {
				errs[at] = r.errs[i]
			}
		case <-ctx.Done():
			rdb.ReloadState(ctx)
			return errs
		}
	}
	return errs
}

// renewals are the answers for part of the claims.
type renewals struct {
	part []int
	errs []error
}

// mostOf is how long a call may take so that its answer comes before ctx ends.
func mostOf(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return lastPoll
	}
	left := time.Until(deadline)
	return left - left/8
}

// renewAt renews claims at their master. What it refuses since their slot moves is sent again, with as few
// keys as it needs, but together: one claim alone could wait until ctx ends.
func (s *Store) renewAt(ctx context.Context, rdb *redis.ClusterClient, master *redis.Client, claims []driver.Claim) []error {
	commands := make([]command, len(claims))
	var left []int
	for i, c := range claims {
		as := s.renewal
		if joins(c) {
			as = s.extension
		}
		commands[i], left = as(claims[i:i+1]), append(left, i)
	}
	errs := make([]error, len(claims))
	_, _ = whileMoving(ctx, func() (_ any, refused error) { // errs has its error
		trip := make([]command, len(left))
		for i, at := range left {
			trip[i] = commands[at]
		}
		sent := left
		left = nil
		for i, err := range s.renewalsAt(ctx, rdb, master, trip) {
			at := sent[i]
			if errs[at] = err; isMoving(err) {
				left, refused = append(left, at), err
				commands[at] = commands[at].bare()
			}
		}
		return nil, refused
	})
	return errs
}

// renewalsAt sends commands to their master. With replicas, it does not follow a slot that has
// moved: it sends the commands of that slot again, each by itself.
func (s *Store) renewalsAt(ctx context.Context, rdb *redis.ClusterClient, master *redis.Client, commands []command) []error {
	errs := make([]error, len(commands))
	if s.replicas.n == 0 {
		for i, p := range s.trip(ctx, commands) {
			look(ctx, rdb, p.Err)
			errs[i] = renewed(&commands[i], 1, p.Answer, commands[i].classify(p.Err))[0]
		}
		return errs
	}
	trip := newBatch(master.Pipeline())
	sent := make([]*redis.Cmd, len(commands))
	for i := range commands {
		sent[i] = commands[i].evalsha(ctx)
		trip.put(ctx, sent[i])
	}
	ack := s.replicas.wait(ctx, trip)
	trip.exec(ctx)
	heard := s.replicas.heard(ack)
	for i, cmd := range sent {
		reply, err := cmd.Result()
		if addr, _ := redirect(err); addr != "" || says(err, "NOSCRIPT") {
			reply, err = commands[i].alone(ctx, rdb, s.replicas)
		} else if err == nil {
			err = heard
		}
		if reply == nil {
			look(ctx, rdb, err)
		}
		errs[i] = renewed(&commands[i], 1, reply, commands[i].classify(err))[0]
	}
	return errs
}
