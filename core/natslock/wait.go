package natslock

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-go/holdfast/core/driver"
)

// lockFreed is what the first in the queue hears. Those behind it hear the digest of the entry before their own,
// once that is gone.
const lockFreed = "lock"

// Wait implements driver.Driver. It looks when it hears that the name is free, or the entry before its own gone.
func (s *Store) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return driver.Grant{}, err
	}
	e := ear{told: make(chan struct{}, 1)}
	heard, err := s.conn.Subscribe(s.wakeSubject(c.Name, "*"), e.hear) // before it looks, so that it misses nothing
	if err != nil {
		return driver.Grant{}, driver.NotSent(driver.Unavailable(err))
	}
	defer func() { _ = heard.Unsubscribe() }() // it fails only with the connection
	return driver.Await(ctx, c, func(ctx context.Context) (driver.Grant, <-chan struct{}, error) {
		e.awaits.Store(nil)
		g, what, err := s.queue(ctx, c)
		if what == "" {
			return g, nil, err
		}
		e.awaits.Store(&what)
		return g, e.told, err
	})
}

// ear hears what has changed at a name.
type ear struct {
	told   chan struct{}          // of size one
	awaits atomic.Pointer[string] // nil during a look, which may miss anything
}

func (e *ear) hear(m *nats.Msg) {
	if what := e.awaits.Load(); what == nil || strings.HasSuffix(m.Subject, "."+*what) {
		select {
		case e.told <- struct{}{}:
		default:
		}
	}
}

// tell has those hear who wait for what. It is a hint: nobody finds out whether they do.
func (s *Store) tell(name, what string) { _ = s.conn.Publish(s.wakeSubject(name, what), nil) }

// queue asks for the name. A claim that is refused is in the queue then, and is told what to wait for; nothing if the
// queue is full.
func (s *Store) queue(ctx context.Context, c driver.Claim) (g driver.Grant, what string, err error) {
	joined := 0 // so many looks ago; a replica may be late to tell
	err = s.run(ctx, func(ctx context.Context) error {
		now, err := s.look(ctx, c, false)
		if err != nil {
			return err
		}
		g, err = s.seize(ctx, c, now)
		_, refused := errors.AsType[*driver.Held](err)
		switch {
		case !refused:
		case now.own != nil && joined > 0:
			what = now.awaits()
		case now.own != nil:
			if moved := s.sit(ctx, c, now.own.slot, now.own.entry.revision, now.own.record); moved != nil {
				return moved
			}
			what = now.awaits()
		case joined == 0:
			slot, ok := now.freeSlot()
			if !ok {
				return err
			}
			if err = s.sit(ctx, c, slot, now.slots[slot].at(), record{}); err == nil {
				joined, err = 1, errStale // those who left before it was there did not tell it
			}
		default:
			joined, err = (joined+1)%9, errMoved
		}
		return err
	})
	return g, what, err
}

// freeSlot is one of the first that are free, so that few are ever used. Those who come at the same time
// seldom choose the same one.
func (n *state) freeSlot() (slot int, ok bool) {
	var free []int
	for slot := range slots {
		if !n.slots[slot].there() {
			free = append(free, slot)
		}
		if len(free) > len(n.queue)+3 {
			break
		}
	}
	if len(free) == 0 {
		return 0, false
	}
	return free[rand.IntN(len(free))], true //nolint:gosec // G404: a slot is no secret
}

// sit writes c's entry, which keeps it alive.
func (s *Store) sit(ctx context.Context, c driver.Claim, slot int, after uint64, r record) error {
	life := driver.PlaceLife(c.TTL)
	r.ID, r.TTL, r.Ends, r.Label = digest(c.Token), life.Milliseconds(), 0, c.Label
	_, err := s.put(ctx, write{key: slotKey(c.Name, slot), value: valueOf(r), ttl: seconds(life), after: after})
	return err
}

// leave takes c's entry out of the queue, and tells who comes after it.
func (s *Store) leave(ctx context.Context, c driver.Claim, now *state) error {
	return repeat(ctx, func() error {
		if now.own == nil {
			return nil
		}
		err := s.remove(ctx, now.own.entry)
		if err == nil {
			s.tell(c.Name, now.own.ID)
		} else if errors.Is(err, errMoved) { // by an earlier call that was given up
			again, failed := s.look(ctx, c, false)
			if failed != nil {
				return failed
			}
			now = again
		}
		return err
	})
}
