package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	contract "github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/oldadapter"
	"github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Next returns s on the new contract of a backend, with a Wait of its own. It is for core's new engine. Its methods
// become those of Store when core changes over, and this goes.
func (s *Store) Next() contract.Driver {
	return &native{Driver: oldadapter.New(s), s: s}
}

type native struct {
	contract.Driver // what is as it was: Renew

	s      *Store
	number atomic.Uint64 // of the last look
	queued sync.Map      // tokens that were refused in a Wait, and were not granted or released since
}

var _ contract.Closer = (*native)(nil)

// Capabilities implements driver.Driver.
func (n *native) Capabilities() contract.Capabilities {
	can := n.Driver.Capabilities()
	can.Forgets = n.s.share != nil // hooks of a Cluster client may keep what they get
	return can
}

// Close implements driver.Closer.
func (n *native) Close(ctx context.Context) error { return n.s.CloseIdle(ctx) }

// Acquire implements driver.Driver.
func (n *native) Acquire(ctx context.Context, c contract.Claim) (contract.Grant, error) {
	was := oldadapter.Claim(c)
	was.Fences = c.Fences
	g, err := n.s.Acquire(ctx, was)
	if err == nil {
		n.queued.Delete(c.Token)
	}
	return oldadapter.Grant(g), oldadapter.Error(err)
}

// Release implements driver.Driver. It runs one script: the one for owners, who are not in the queue, or the
// one that leaves the queue. If the first finds no owner, it has changed nothing, and the other follows.
func (n *native) Release(ctx context.Context, c contract.Claim) error {
	was := oldadapter.Claim(c)
	if _, queued := n.queued.LoadAndDelete(c.Token); !queued || c.Dedup > 0 || c.Keep > 0 { // who leaves something is an owner
		owns := was
		owns.Keep, owns.Mark = c.Keep, c.Dedup > 0
		if err := n.s.Release(ctx, owns); !errors.Is(err, driver.ErrNotOwner) {
			return oldadapter.Error(err)
		}
	}
	was.Place = c.Token
	return oldadapter.Error(n.s.Release(ctx, was))
}

// Wait implements driver.Driver. Each look is one script, which stands in the queue and asks in one step. It looks when
// it hears something, when the owner's TTL or the life of the first in the queue ends, and every Recheck. Without
// notifications, or while a foreign client has the name, it also looks after 25 ms, then less and less often.
//
// What a look leaves in the queue has its number and the nonce of this call. A grant by whoever frees the name is
// believed if it has both, and counts from when that look was sent.
func (n *native) Wait(ctx context.Context, c contract.Claim) (contract.Grant, error) {
	answer, err := n.s.inquire(ctx, c.Name, true)
	if err != nil {
		return contract.Grant{}, oldadapter.Error(err)
	}
	w := &wait{n: n, c: c, was: oldadapter.Claim(c)}
	w.was.Fences = c.Fences
	g, err := w.wait(ctx)
	if n.s.relaid(err) {
		g, err = w.wait(ctx)
	}
	n.s.settle(answer, err)
	if err == nil {
		n.queued.Delete(c.Token)
	} else if !errors.Is(err, driver.ErrNotSent) {
		n.queued.Store(c.Token, nil)
	}
	return g, oldadapter.Error(err)
}

// wait is one call of Wait.
type wait struct {
	n     *native
	c     contract.Claim
	was   driver.Claim
	nonce string
	looks []sentLook // those that may still be what stands in the queue
	held  *driver.Held
}

type sentLook struct {
	number string
	sent   time.Time
}

func (w *wait) wait(ctx context.Context) (contract.Grant, error) {
	hub := w.n.s.hubs.of(w.c.Name)
	heard, leave := hub.listen(w.c.Token)
	defer leave()
	told := hub.await(ctx)
	if err := driver.NotSent(ctx.Err()); err != nil { // while the subscription began
		return contract.Grant{}, err
	}
	w.nonce = rand.Text()
	for poll := firstPoll; ; poll, told = min(2*poll, lastPoll), hub.tells() {
		g, again, err := w.look(ctx)
		if err == nil || !errors.As(err, &w.held) {
			return w.orTold(heard, g, err)
		}
		h := contract.Held(*w.held)
		w.c.Tell(&h)
		if again == 0 || !told && again > poll {
			again = poll
		}
		timer := time.NewTimer(min(again, driver.Recheck(w.c.TTL)))
		var message string
		select {
		case message = <-heard:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return w.orTold(heard, contract.Grant{}, w.held)
		}
		timer.Stop()
		if g, ok := w.granted(message); ok {
			return g, nil
		}
		if deadline, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(deadline) <= 0 {
			return contract.Grant{}, w.held
		}
	}
}

// orTold is an outcome, unless a grant has been told meanwhile.
func (w *wait) orTold(heard <-chan string, g contract.Grant, err error) (contract.Grant, error) {
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
func (w *wait) granted(message string) (contract.Grant, bool) {
	number, rest, _ := strings.Cut(message, " ")
	fence, ok := strings.CutPrefix(rest, w.nonce+" ")
	if !ok {
		return contract.Grant{}, false
	}
	for _, l := range w.looks {
		if l.number == number {
			was, err := granted(fence)
			g := oldadapter.Grant(was)
			g.TTL, g.Asked = contract.PlaceLife(w.c.TTL), l.sent
			return g, err == nil
		}
	}
	return contract.Grant{}, false
}

// look asks for the name once, and says when to look again if that is refused: 0 if nobody tells.
func (w *wait) look(ctx context.Context) (g contract.Grant, again time.Duration, err error) {
	s, c := w.n.s, w.was
	cmd, offer := w.command()
	longer, stop := outlast(ctx)
	defer stop()
	sent := time.Now()
	if offer != "" {
		w.looks = append(w.looks[max(0, len(w.looks)-maxLooks+1):], sentLook{offer, sent})
	}
	reply, err := s.known(longer, cmd)
	if refused, ok := reply.([]any); ok { // replicas need not know of a refusal
		err := refusal(refused)
		return g, lookAgain(refused), err
	}
	if err != nil {
		return g, 0, err
	}
	var was driver.Grant
	if joins(c) {
		was, err = joined(reply)
	} else {
		was, err = granted(reply)
	}
	g = oldadapter.Grant(was)
	g.Asked = sent
	return g, 0, err
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

// command is the script of a look, and its number if it leaves an offer.
func (w *wait) command() (cmd command, offer string) {
	s, c := w.n.s, w.was
	line, beats := s.lineKeys(c.Name)
	number := decimal(int64(w.n.number.Add(1))) //nolint:gosec // G115: it counts from 1
	note := number + magic + c.Label
	lives := millis(driver.PlaceLife(c.TTL) + 2*time.Millisecond - 1) // rounded up, by a clock of whole milliseconds
	parts := []string{s.lockKey(c.Name), s.layout.fence(c.Name), line, beats}
	if joins(c) {
		holders, notes := s.holdersKeys(c.Name)
		parts = append(parts, holders, notes)
		cmd.script = askTogetherScript
	} else {
		cmd.script = askScript
	}
	if c.Dedup > 0 {
		parts = append(parts, s.doneKey(c))
	}
	cmd.lasting, cmd.keys, cmd.parts = true, len(parts), parts
	if joins(c) {
		cmd.parts = append(cmd.parts, holder(c), millis(c.TTL), limitOf(c), s.hubs.member(c), lives, s.hubs.channels(c.Name), c.Label, note)
		return cmd, ""
	}
	handoff := ""
	if c.Handoff != "" {
		handoff = forHandoff(c)
	}
	if w.c.Plain() && s.replicas.n == 0 { // nobody would wait for the replicas
		offer = number
		note = strings.Join([]string{number, w.nonce, fencesOf(c), lives, owned(c)}, " ")
	}
	cmd.parts = append(cmd.parts, owned(c), millis(c.TTL), fencesOf(c), s.hubs.member(c), lives, s.hubs.channels(c.Name), note, handoff)
	return cmd, offer
}
