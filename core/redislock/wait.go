package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
)

// Wait implements driver.Driver. Each look is one script, which stands in the queue and asks in one step. It looks when
// it hears something, when the owner's TTL or the life of the first in the queue ends, and every Recheck. Without
// notifications, or while a foreign client has the name, it also looks after 25 ms, then less and less often.
//
// What a look leaves in the queue has its number and the nonce of this call. A grant by whoever frees the name is
// believed if it has both, and counts from when that look was sent.
func (s *Store) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return s.await(ctx, &wait{store: s, c: ranked.Claim{Claim: c}})
}

// WaitRanked is Wait for a node of package redlock: it grants nothing.
func (s *Store) WaitRanked(ctx context.Context, c ranked.Claim) error {
	_, err := s.await(ctx, &wait{store: s, c: c, turn: true})
	return err
}

func (s *Store) await(ctx context.Context, w *wait) (driver.Grant, error) {
	c := &w.c
	answer, err := s.inquire(ctx, c.Name)
	if err != nil {
		return driver.Grant{}, err
	}
	g, err := w.wait(ctx)
	if s.relaid(err) {
		g, err = w.wait(ctx)
	}
	s.settle(answer, err)
	switch m := driver.Explain(err); m.Kind {
	case driver.Done, driver.Marked: // it has left the queue, unless it was only told
		if w.turn {
			s.queued.Store(c.Token, nil)
			break
		}
		s.queued.Delete(c.Token)
	case driver.NotDone:
	default:
		s.queued.Store(c.Token, nil)
	}
	return g, err
}

// wait is one call of Wait.
type wait struct {
	store *Store
	c     ranked.Claim
	turn  bool // it only wants to know when it would be granted the name
	nonce string
	looks []sentLook // those that may still be what stands in the queue
	held  *driver.Held
}

type sentLook struct {
	number string
	sent   time.Time
}

func (w *wait) wait(ctx context.Context) (driver.Grant, error) {
	subscriber := w.store.subscribers.of(w.c.Name)
	heard, leave := subscriber.listen(w.c.Token)
	defer leave()
	told := subscriber.await(ctx)
	if err := driver.NotSent(ctx.Err()); err != nil { // while the subscription began
		return driver.Grant{}, err
	}
	w.nonce = rand.Text()
	for poll := firstPoll; ; poll, told = min(2*poll, lastPoll), subscriber.tells() {
		g, again, err := w.look(ctx)
		if err == nil || !errors.As(err, &w.held) {
			return w.orTold(heard, g, err)
		}
		w.c.Tell(w.held)
		if again == 0 || !told && again > poll {
			again = poll
		}
		timer := time.NewTimer(min(again, driver.Recheck(w.c.TTL)))
		var message string
		select {
		case message = <-heard:
			if w.turn { // another look would be a round trip more
				timer.Stop()
				return driver.Grant{}, nil
			}
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return w.orTold(heard, driver.Grant{}, w.held)
		}
		timer.Stop()
		if g, ok := w.granted(message); ok {
			return g, nil
		}
		if past(ctx) {
			return driver.Grant{}, w.held
		}
	}
}

// past says whether ctx has ended. The client may take it for ended at its deadline, before it is.
func past(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) <= 0
}

// orTold is an outcome, unless a grant has been told meanwhile.
func (w *wait) orTold(heard <-chan string, g driver.Grant, err error) (driver.Grant, error) {
	if err != nil {
		select {
		case message := <-heard:
			if told, ok := w.granted(message); ok {
				return told, nil
			}
		default:
		}
	}
	return g, err
}

// granted reads what a direct grant is told with: the number of a look and the nonce, and the fence. Any other
// message is a hint.
func (w *wait) granted(message string) (driver.Grant, bool) {
	number, rest, _ := strings.Cut(message, " ")
	fence, ok := strings.CutPrefix(rest, w.nonce+" ")
	if !ok {
		return driver.Grant{}, false
	}
	for _, l := range w.looks {
		if l.number == number {
			g, err := granted(fence)
			g.TTL, g.Asked = driver.PlaceLife(w.c.TTL), l.sent
			return g, err == nil
		}
	}
	return driver.Grant{}, false
}

// look asks for the name once, and says when to look again if that is refused: 0 if nobody tells.
func (w *wait) look(ctx context.Context) (g driver.Grant, again time.Duration, err error) {
	s := w.store
	cmd, number := w.command()
	longer, stop := outlast(ctx)
	defer stop()
	sent := time.Now()
	if number != "" {
		w.looks = append(w.looks[max(0, len(w.looks)-maxLooks+1):], sentLook{number, sent})
	}
	reply, err := s.known(longer, cmd)
	g, err = decided(w.c.Claim, reply, err)
	if refused, ok := reply.([]any); ok {
		again = lookAgain(refused)
	}
	g.Asked = sent
	return g, again, err
}

// lookAgain is when to look again after a refusal: 0 if nobody tells of its end.
func lookAgain(refused []any) time.Duration {
	const left, last = 1, 4
	switch {
	case len(refused) > last: // the script says it
		ms, _ := refused[last].(int64)
		return time.Duration(max(0, ms)) * time.Millisecond
	case len(refused) > left:
		if ms, _ := refused[left].(int64); ms >= 0 { // somebody may have removed its TTL
			return time.Duration(ms+1) * time.Millisecond // so that it is gone then, not about to go
		}
	}
	return 0
}

// maxLooks is how many looks of a call can be what stands in the queue, or is about to.
const maxLooks = 16

// command is the script of a look, and its number if it may be granted directly.
func (w *wait) command() (cmd command, number string) {
	s, c := w.store, w.c.Claim
	number = decimal(int64(w.store.number.Add(1))) //nolint:gosec // G115: it counts from 1
	if w.turn {
		cmd = s.question(w.c, number+magic+c.Label)
		cmd.parts[cmd.keys+1] = "0" // instead of the TTL
		return cmd, ""
	}
	if w.c.Plain() && s.replicas.n == 0 { // nobody would wait for the replicas
		return s.question(w.c, strings.Join([]string{number, w.nonce, fencesOf(c), lives(c), owned(c)}, " ")), number
	}
	return s.question(w.c, number+magic+c.Label), ""
}

// lives is how long an entry stays in the queue after a look, in ms, rounded up, by a clock of whole milliseconds.
func lives(c driver.Claim) string { return millis(driver.PlaceLife(c.TTL) + 2*time.Millisecond - 1) }

func fencesOf(c driver.Claim) string { return decimal(int64(max(1, c.Fences))) }

// Pauses between looks at a name that a foreign client holds. Its release tells nobody.
const (
	firstPoll = 25 * time.Millisecond
	lastPoll  = time.Second
)

// lastWords is how long, after the end of a context, we wait for an answer that is under way.
const lastWords = 30 * time.Millisecond

// outlast is ctx, but ends a while later. Otherwise a command that queues an entry, and is under way
// when its caller gives up, could be overtaken by the command that leaves the queue.
func outlast(ctx context.Context) (longer context.Context, stop func()) {
	deadline, ok := ctx.Deadline()
	if !ok { // longer than any wait
		deadline = time.Now().Add(time.Hour)
	}
	longer, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(lastWords))
	stopWatching := context.AfterFunc(ctx, func() {
		if time.Until(deadline) > 0 { // otherwise longer ends by its own deadline, and says so
			time.AfterFunc(lastWords, cancel)
		}
	})
	return longer, func() { stopWatching(); cancel() }
}

// Rank implements ranked.Node. It runs one script that only reads.
func (s *Store) Rank(ctx context.Context, name string) (uint64, error) {
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
