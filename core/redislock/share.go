package redislock

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/share"
)

type (
	sharing = share.Share[command, any]
	part    = share.Part[command, any]
)

// newSharing has the commands of a Store share round trips. Those that can be merged share one call of a script.
func (s *Store) newSharing() *sharing {
	return &sharing{Alone: s.alone, Send: s.together, Flights: flights}
}

// flights is how many round trips commands share: the server works for one while we work for another. A third one carries what is
// too much for two. To a server farther away there are more, so that nobody waits for most of a round trip before its own begins.
func flights(commands int, trip time.Duration) int {
	least := 2
	if commands > 2*share.Most {
		least = 3
	}
	return min(max(least, int(trip/(300*time.Microsecond))), 16)
}

func (s *Store) alone(ctx context.Context, c command) (any, error) {
	c = s.spelled(c)
	c.second = c.tells && s.subscribers.subscribed()
	return c.alone(ctx, s.rdb, s.replicas)
}

// together makes one round trip for a batch, and a second one for scripts that the server does not know.
// That answer proves that nothing was executed.
func (s *Store) together(ctx context.Context, batch []*part) {
	loads := s.stow(batch)
	s.exec(ctx, loads, nil)
	var unknown []*load
	first := map[*script]*load{}
	for _, l := range loads {
		if says(l.sent.Err(), "NOSCRIPT") {
			unknown = append(unknown, l)
			if first[l.cmd.script] == nil {
				first[l.cmd.script] = l
			}
		}
	}
	if len(unknown) > 0 {
		s.exec(ctx, unknown, first)
	}
	for _, l := range loads {
		l.deliver(ctx, s)
	}
}

// exec makes one round trip. The first command of each script has the whole script with it, if told.
func (s *Store) exec(ctx context.Context, loads []*load, first map[*script]*load) {
	trip := newBatch(s.rdb.Pipeline())
	lasting := false
	for _, l := range loads {
		if l.sent = l.cmd.evalsha(ctx); first[l.cmd.script] == l {
			l.sent = l.cmd.eval(ctx)
		}
		trip.put(ctx, l.sent)
		lasting = lasting || l.cmd.lasting
	}
	var ack *redis.Cmd // one for all of them
	if lasting && s.replicas.n > 0 {
		ack = s.replicas.wait(ctx, trip)
	}
	for _, l := range loads {
		l.ack = ack
	}
	trip.exec(ctx)
}

// trip makes one round trip for commands, and returns them with their replies. It waits for no other
// round trip.
func (s *Store) trip(ctx context.Context, commands []command) []*part {
	batch := make([]*part, len(commands))
	for i, cmd := range commands {
		batch[i] = &part{Command: cmd}
	}
	s.together(ctx, batch)
	return batch
}

// load is one command of a pipeline: one part of the batch, or several that were merged.
type load struct {
	parts []*part
	cmd   command
	sent  *redis.Cmd
	ack   *redis.Cmd // of the replicas, or nil
}

// stow merges what can be merged.
func (s *Store) stow(batch []*part) []*load {
	var loads []*load
	type kind struct {
		merger *merger
		group  int
	}
	merged := make(map[kind]*load, 2)
	for _, p := range batch {
		m := kind{p.Command.merger, p.Command.group}
		if l := merged[m]; m.merger != nil && l != nil {
			l.parts = append(l.parts, p)
			continue
		}
		l := &load{parts: append(make([]*part, 0, len(batch)), p), cmd: p.Command}
		loads = append(loads, l)
		if m.merger != nil {
			merged[m] = l
		}
	}
	for _, l := range loads {
		if len(l.parts) > 1 {
			l.cmd = l.cmd.merger.of(s, l.parts)
		} else {
			l.cmd = s.spelled(l.cmd)
		}
	}
	return loads
}

// deliver gives each part its reply. If the server has forgotten the script again, nothing was
// executed, and the command is sent again with the whole script.
func (l *load) deliver(ctx context.Context, s *Store) {
	reply, err := l.sent.Result()
	if says(err, "NOSCRIPT") {
		reply, err = l.cmd.whole(ctx, s.rdb, s.replicas)
	} else if err == nil && l.cmd.lasting && l.ack != nil {
		err = s.replicas.heard(l.ack)
	}
	err = l.cmd.script.explained(err)
	for i, p := range l.parts {
		p.Answer, p.Err, p.Said = reply, err, true
		if len(l.parts) > 1 {
			p.Answer, p.Err = l.cmd.answered(reply, i, len(l.parts), err)
		}
	}
}

var errUnknownReply = errors.New("redislock: unknown reply to a merged command")
