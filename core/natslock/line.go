package natslock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/nats-io/nats.go"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// lockFreed is what the first in line hears. Those behind it hear the digest of the place before their own,
// once that is left.
const lockFreed = "lock"

var errFull = errors.New("natslock: the queue is full")

// Wait implements driver.Queuer.
func (s *store) Wait(ctx context.Context, c driver.Claim) error {
	linked, end, err := s.ready(ctx)
	if err != nil {
		return err
	}
	defer end()
	told, err := s.conn.SubscribeSync(s.wakeSubject(c.Name, "*")) // before it looks, so that it misses nothing
	if err != nil {
		return driver.Unavailable(err)
	}
	defer func() { _ = told.Unsubscribe() }() // it fails only with the connection
	for {
		what, err := s.lineUp(linked, c)
		if what == "" || err != nil {
			return err
		}
		if err := s.listen(linked, told, what, c); err != nil {
			return err
		}
	}
}

// lineUp stands in line, and says what to wait for. "" means that it is c's turn.
func (s *store) lineUp(ctx context.Context, c driver.Claim) (what string, err error) {
	stood := 0 // so many looks ago; a replica may be late to tell
	for tries := 0; ; tries++ {
		now, err := s.look(ctx, c, false)
		switch {
		case err != nil || now.owned(c):
			return "", err
		case now.own != nil && stood > 0:
			return now.awaits(c), nil
		case now.own != nil:
			if err = s.stay(ctx, c, now, c.Label); err == nil {
				return now.awaits(c), nil
			}
		case stood == 0:
			if err = s.stand(ctx, c, now); err == nil {
				stood = 1
				continue // those who left before it stood there did not tell it
			}
		default:
			if stood++; stood > 8 {
				stood = 0
			}
		}
		if err != nil && !errors.Is(err, errMoved) { // never ctx's error as it is: it may be executed yet
			return "", fmt.Errorf("natslock: to line up: %w", err)
		}
		if err := pause(ctx, tries); err != nil {
			return "", err
		}
	}
}

// awaits is what a place waits for: "" if it is its turn.
func (n *state) awaits(c driver.Claim) string {
	switch {
	case !n.heads():
		return n.before()
	case !n.admits(c):
		return lockFreed
	default:
		return ""
	}
}

// stand goes to the end of the line, on a seat that nobody has, for as long as the place is heard of.
func (s *store) stand(ctx context.Context, c driver.Claim, now *state) error {
	seat, ok := now.freeSeat()
	if !ok {
		return errFull
	}
	return s.sit(ctx, c, seat, now.seats[seat].at(), record{label: c.Label})
}

// freeSeat is one of the first that are free, so that few are ever used. Those who come at the same time
// seldom choose the same one.
func (n *state) freeSeat() (seat int, ok bool) {
	var free []int
	for seat := range seats {
		if !n.seats[seat].there() {
			free = append(free, seat)
		}
		if len(free) > len(n.line)+3 {
			break
		}
	}
	if len(free) == 0 {
		return 0, false
	}
	return free[rand.IntN(len(free))], true //nolint:gosec // G404: a seat is no secret
}

// stay keeps c's place, with this label.
func (s *store) stay(ctx context.Context, c driver.Claim, now *state, label string) error {
	r := now.own.record
	r.label = label
	return s.sit(ctx, c, now.own.seat, now.own.entry.revision, r)
}

// sit writes c's place.
func (s *store) sit(ctx context.Context, c driver.Claim, seat int, after uint64, r record) error {
	r.id, r.ttl = digest(c.At()), driver.PlaceLife(c.TTL)
	_, err := s.put(ctx, write{key: seatKey(c.Name, seat), value: r.String(), ttl: seconds(r.ttl), after: after})
	return err
}

// leave takes c's place out of the line, and tells who comes after it.
func (s *store) leave(ctx context.Context, c driver.Claim, now *state) error {
	for tries := 0; now.own != nil; tries++ {
		err := s.remove(ctx, now.own.entry)
		switch {
		case err == nil:
			s.tell(c.Name, now.own.id)
			return nil
		case !errors.Is(err, errMoved): // by another caller of the same process
			return err
		}
		if err := pause(ctx, tries); err != nil {
			return err
		}
		if now, err = s.look(ctx, c, false); err != nil {
			return err
		}
	}
	return nil
}

// tell has those hear who wait for what. It is a hint: nobody finds out whether they do.
func (s *store) tell(name, what string) { _ = s.conn.Publish(s.wakeSubject(name, what), nil) }

// listen returns when what is told, and after driver.Recheck, since the place wants to be heard of, and the
// message may have been lost.
func (s *store) listen(ctx context.Context, told *nats.Subscription, what string, c driver.Claim) error {
	bounded, cancel := context.WithTimeout(ctx, driver.Recheck(c.TTL))
	defer cancel()
	for {
		m, err := told.NextMsgWithContext(bounded)
		switch {
		case ctx.Err() != nil:
			return ended(ctx)
		case bounded.Err() != nil:
			return nil
		case err != nil:
			return driver.Unavailable(err)
		case strings.HasSuffix(m.Subject, "."+what):
			return nil
		}
	}
}
