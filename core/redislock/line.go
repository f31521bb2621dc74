package redislock

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Pauses between looks at a name that a foreign client holds: its release tells nobody.
const (
	firstPoll = 25 * time.Millisecond
	lastPoll  = time.Second
)

// lastWords is how long an answer that is under way is waited for beyond the end of a context.
const lastWords = 30 * time.Millisecond

// Wait implements driver.Queuer.
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

// outlast is ctx, but ends a while after it: a command that lines somebody up, and is under way
// when its caller gives up, would else be overtaken by the one that leaves the line.
func outlast(ctx context.Context) (longer context.Context, stop func()) {
	deadline, ok := ctx.Deadline()
	if !ok { // as far away as any wait goes
		deadline = time.Now().Add(time.Hour)
	}
	longer, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(lastWords))
	stopWatching := context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })
	return longer, func() { stopWatching(); cancel() }
}

// lineUp stands in line, and says whether to try now, or when to look again: 0 if nobody
// can say.
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
		if ms < 0 { // it has no TTL: somebody has taken that away
			return false, 0, nil
		}
		return false, time.Duration(ms+1) * time.Millisecond, nil // to find it gone, not about to go
	default:
		return false, 0, fmt.Errorf("redislock: unknown reply %T to a wait", reply)
	}
}

// Yield implements driver.Yielder.
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

// leave gives c's place in line up, and releases it if its token owns the name.
func (s *Store) leave(c driver.Claim) command {
	line, beats := s.lineKeys(c.Name)
	return command{
		script: leaveScript, keys: 3,
		parts: []string{s.lockKey(c.Name), line, beats, owner(c), s.hubs.member(c), s.hubs.channels(c.Name)},
	}
}

// life is how long a place lives of which nothing is heard, in ms.
func life(c driver.Claim) string { return millis(driver.PlaceLife(c.TTL)) }

func fencesOf(c driver.Claim) string { return decimal(int64(max(1, c.Fences))) }
