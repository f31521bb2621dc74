package redislock

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Pauses between looks at a name that a foreign client holds. Its release tells nobody.
const (
	firstPoll = 25 * time.Millisecond
	lastPoll  = time.Second
)

// lastWords is how long, after the end of a context, we wait for an answer that is under way.
const lastWords = 30 * time.Millisecond

// Wait implements driver.Queuer. It returns when it hears a notification. It looks at the name at
// once, and when the owner's TTL, or the life of the first place in the queue, ends. Without
// notifications, or while a foreign client has the name, it also looks after 25 ms, then less and
// less often, up to a second apart. Each look runs one script.
func (s *Store) Wait(ctx context.Context, c driver.Claim) error {
	hub := s.hubs.of(c.Name)
	heard, leave := hub.listen(c.At())
	defer leave()
	told := hub.await(ctx)
	for poll := firstPoll; ; poll, told = min(2*poll, lastPoll), hub.tells() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		try, again, err := s.lineUp(ctx, c)
		if try || err != nil {
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
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
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

// lineUp puts c's place in the queue. It says whether to try now, or when to look again: 0 if
// that is not known.
func (s *Store) lineUp(ctx context.Context, c driver.Claim) (try bool, again time.Duration, err error) {
	line, beats := s.lineKeys(c.Name)
	cmd := command{
		script: waitScript, keys: 3,
		parts: []string{s.lockKey(c.Name), line, beats, s.hubs.member(c), owner(c), life(c), s.hubs.channels(c.Name)},
	}
	if joins(c) {
		cmd = s.waitTogether(c)
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

// Yield implements driver.Yielder. It runs one script.
func (s *Store) Yield(ctx context.Context, old, next driver.Claim) (g driver.Grant, errNext, errOld error) {
	line, beats := s.lineKeys(next.Name)
	reply, err := s.run(ctx, command{
		script: yieldScript, lasting: true, keys: 4,
		parts: []string{
			s.lockKey(next.Name), s.fences.key(next.Name), line, beats,
			owner(old), owned(next), millis(next.TTL), fencesOf(next),
			s.hubs.member(next), life(next), s.hubs.channels(next.Name),
		},
	})
	switch { // only a grant needs replicas
	case reply == int64(1):
		return g, &driver.Held{}, nil
	case reply == int64(0):
		return g, driver.ErrNotSent, driver.ErrNotOwner
	case err != nil:
		return g, err, err
	}
	g, err = granted(reply)
	return g, err, err
}

// leave gives up c's place in the queue, and releases the name if c's token owns it.
func (s *Store) leave(c driver.Claim) command {
	line, beats := s.lineKeys(c.Name)
	return command{
		script: leaveScript, keys: 3,
		parts: []string{s.lockKey(c.Name), line, beats, owner(c), s.hubs.member(c), s.hubs.channels(c.Name)},
	}
}

// life is how long a place stays in the queue without a heartbeat, in ms.
func life(c driver.Claim) string { return millis(driver.PlaceLife(c.TTL)) }

func fencesOf(c driver.Claim) string { return decimal(int64(max(1, c.Fences))) }
