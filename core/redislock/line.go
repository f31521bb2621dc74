package redislock

import (
	"context"
	"fmt"
	"strconv"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Pauses between looks at a name that a foreign client holds. Its release tells nobody.
const (
	firstPoll = 25 * time.Millisecond
	lastPoll  = time.Second
)

// lastWords is how long, after the end of a context, we wait for an answer that is under way.
const lastWords = 30 * time.Millisecond

// Wait implements driver.Queuer, for nodes of a quorum. It returns when it hears a notification. It looks at the name at
// once, and when the owner's TTL, or the life of the first place in the queue, ends. Without
// notifications, or while a foreign client has the name, it also looks after 25 ms, then less and
// less often, up to a second apart. Each look runs one script.
func (s *store) Wait(ctx context.Context, c driver.Claim) error {
	err := s.wait(ctx, c)
	if s.relaid(err) {
		return s.wait(ctx, c)
	}
	return err
}

func (s *store) wait(ctx context.Context, c driver.Claim) error {
	hub := s.hubs.of(c.Name)
	heard, leave := hub.listen(c.At())
	defer leave()
	told := hub.await(ctx)
	if err := driver.NotSent(ctx.Err()); err != nil { // while the subscription began
		return err
	}
	for poll := firstPoll; ; poll, told = min(2*poll, lastPoll), hub.tells() {
		try, again, err := s.lineUp(ctx, c)
		if err != nil || try {
			return err
		}
		if again == 0 || !told && again > poll {
			again = poll
		}
		timer := time.NewTimer(again)
		select {
		case <-heard:
			timer.Stop()
			return nil
		case <-timer.C:
			if ctx.Err() == nil {
				continue
			}
		case <-ctx.Done():
			timer.Stop()
		}
		return ctx.Err()
	}
}

// outlast is ctx, but ends a while later. Otherwise a command that queues a place, and is under way
// when its caller gives up, could be overtaken by the command that leaves the queue.
func outlast(ctx context.Context) (longer context.Context, stop func()) {
	deadline, ok := ctx.Deadline()
	if !ok { // longer than any wait
		deadline = time.Now().Add(time.Hour)
	}
	longer, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(lastWords))
	stopWatching := context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })
	return longer, func() { stopWatching(); cancel() }
}

// lineUp puts c's place in the queue. It says whether to try now, or when to look again: 0 if that is not known.
func (s *store) lineUp(ctx context.Context, c driver.Claim) (try bool, again time.Duration, err error) {
	line, beats := s.lineKeys(c.Name)
	cmd := command{
		script: waitScript, keys: 3,
		parts: []string{
			s.lockKey(c.Name), line, beats,
			s.hubs.member(c), owner(c), lives(c), s.hubs.channels(c.Name), "0" + magic + c.Label, rankOf(c),
		},
	}
	ctx, stop := outlast(ctx)
	defer stop()
	reply, err := s.run(ctx, cmd)
	if err != nil {
		return false, 0, err
	}
	answer, _ := reply.([]any)
	switch {
	case len(answer) == 1 && answer[0] == int64(1):
		return true, 0, nil
	case len(answer) == 1 && answer[0] == int64(2):
		return false, 0, nil
	case len(answer) == 2 && answer[0] == int64(0):
		ms, _ := answer[1].(int64)
		if ms < 0 { // somebody has removed its TTL
			return false, 0, nil
		}
		return false, time.Duration(ms+1) * time.Millisecond, nil // so that it is gone then, not about to go
	default:
		return false, 0, fmt.Errorf("redislock: unknown reply %T to a wait", reply)
	}
}

// leave gives up c's place in the queue, and releases the name if c's token owns it.
func (s *store) leave(c driver.Claim) command {
	line, beats := s.lineKeys(c.Name)
	return command{
		script: leaveScript, keys: 4,
		parts: []string{
			s.lockKey(c.Name), line, beats, s.layout.fence(c.Name),
			owner(c), s.hubs.member(c), s.hubs.channels(c.Name),
		},
	}
}

// Rank implements driver.Ranker. It runs one script that only reads.
func (s *store) Rank(ctx context.Context, name string) (uint64, error) {
	line, _ := s.lineKeys(name)
	reply, err := s.run(ctx, command{script: rankScript, keys: 1, parts: []string{line}})
	if err != nil {
		return 0, err
	}
	text, _ := reply.(string)
	rank, err := strconv.ParseUint(text, 10, 64)
	if err != nil || rank == 0 {
		return 0, fmt.Errorf("redislock: unknown reply %T to a rank", reply)
	}
	return rank, nil
}

// rankOf is the rank of c's place as scripts read it.
func rankOf(c driver.Claim) string {
	if c.Rank == 0 {
		return ""
	}
	return strconv.FormatUint(c.Rank, 10)
}

func fencesOf(c driver.Claim) string { return decimal(int64(max(1, c.Fences))) }
