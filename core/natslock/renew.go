package natslock

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// atOnce is how many leases are renewed at the same time.
const atOnce = 32

// Renew implements driver.Driver. It reads all locks at once. Then each lock that claims still own is written again, at
// the revision that was read: once for all of its claims.
func (s *Store) Renew(ctx context.Context, claims []driver.Claim) []error {
	errs := make([]error, len(claims))
	of := make(map[string]*renewal, len(claims))
	for i, c := range claims {
		key := lockKey(c.Name)
		if of[key] == nil {
			of[key] = &renewal{name: c.Name, claims: claims, errs: errs}
		}
		of[key].of = append(of[key].of, i)
	}
	if err := s.run(ctx, func(ctx context.Context) error { return s.renewAll(ctx, of) }); err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	return errs
}

func (s *Store) renewAll(ctx context.Context, of map[string]*renewal) error {
	at, err := s.locks(ctx, of)
	if err != nil {
		return err
	}
	var renewing sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for _, r := range of {
		turns <- struct{}{}
		renewing.Go(func() {
			s.renew(ctx, r, at)
			<-turns
		})
	}
	renewing.Wait()
	return nil
}

// locks reads the locks. If one of them can have several holders, it asks for the server's time, too.
func (s *Store) locks(ctx context.Context, of map[string]*renewal) (at time.Time, err error) {
	found, err := s.read(ctx, slices.Collect(maps.Keys(of))...)
	several := false
	for _, e := range found {
		if r := of[e.key]; r != nil {
			r.lock, several = e, several || e.there() && lockOf(e).several()
		}
	}
	if err != nil || !several {
		return at, err
	}
	server, err := s.info(ctx)
	if err != nil {
		return at, err
	}
	return server.TimeStamp, nil
}

// renewal is that of one lock.
type renewal struct {
	name   string
	lock   *entry
	claims []driver.Claim
	of     []int // those that it is about
	errs   []error
}

// judge answers each claim as far as the state does, and returns the lock as it will be once it is written for the
// others. Each claim meets what those before it have made of the lock.
func (r *renewal) judge(now state) (next lock, renewed []int) {
	if now.is.several() {
		now.is = now.is.alive(now.at)
	}
	for _, i := range r.of {
		c := r.claims[i]
		mine := now.mine(c)
		switch {
		case mine == nil:
			r.errs[i] = driver.ErrNotOwner
		case c.TTL == 0:
			r.errs[i] = nil
		default:
			h := *mine
			h.TTL, h.Ends = c.TTL.Milliseconds(), 0
			now.is = now.is.with(h)
			renewed = append(renewed, i)
		}
	}
	return now.is, renewed
}

// renew writes a lock again. That nobody has it counts only if the leader has said so: see read.
func (s *Store) renew(ctx context.Context, r *renewal, at time.Time) {
	sure := false
	err := repeat(ctx, func() error {
		now := &state{at: at}
		now.locked(r.lock)
		next, renewed := r.judge(*now)
		if sure && len(renewed) == 0 {
			return nil
		}
		err := errMoved
		if sure || len(renewed) == len(r.of) {
			_, err = s.set(ctx, r.name, now, next)
		}
		if errors.Is(err, errMoved) {
			lock, failed := s.ask(ctx, lockKey(r.name))
			if failed != nil {
				return failed
			}
			r.lock, sure = lock, true
			return err
		}
		r.answer(renewed, err)
		return nil
	})
	if err != nil {
		r.answer(r.of, err)
	}
}

func (r *renewal) answer(of []int, err error) {
	for _, i := range of {
		r.errs[i] = err
	}
}
