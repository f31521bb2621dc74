package natslock

import (
	"context"
	"errors"
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
	ctx, end, err := s.ready(ctx)
	if err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	defer end()
	locks, at, err := s.locks(ctx, claims)
	if err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	errs := make([]error, len(claims))
	var renewing sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for name, of := range byName(claims) {
		turns <- struct{}{}
		renewing.Go(func() {
			defer func() { <-turns }()
			s.renew(ctx, &renewal{name: name, claims: claims, of: of, errs: errs}, locks[lockKey(name)], at)
		})
	}
	renewing.Wait()
	return errs
}

// byName says which of the claims are of each name.
func byName(claims []driver.Claim) map[string][]int {
	of := make(map[string][]int, len(claims))
	for i, c := range claims {
		of[c.Name] = append(of[c.Name], i)
	}
	return of
}

// locks reads the locks of the claims. If one of them has several holders, it asks for the server's time, too.
func (s *Store) locks(ctx context.Context, claims []driver.Claim) (locks map[string]*entry, at time.Time, err error) {
	locks = make(map[string]*entry, len(claims))
	several := false
	for batch := range slices.Chunk(claims, slots) {
		keys := make([]string, 0, len(batch))
		for _, c := range batch {
			keys = append(keys, lockKey(c.Name))
		}
		found, err := s.read(ctx, keys...)
		if err != nil {
			return nil, at, err
		}
		for _, e := range found {
			locks[e.key] = e
			several = several || e.there() && lockOf(e).several()
		}
	}
	if several {
		server, err := s.info(ctx)
		if err != nil {
			return nil, at, err
		}
		at = server.TimeStamp
	}
	return locks, at, nil
}

// renewal is that of one lock.
type renewal struct {
	name   string
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

// renew writes a lock again. In a cluster, what a replica has told may be too old.
func (s *Store) renew(ctx context.Context, r *renewal, e *entry, at time.Time) {
	for tries := 0; ; tries++ {
		now := &state{at: at}
		now.locked(e)
		next, renewed := r.judge(*now)
		sure := tries > 0 || !s.clustered()
		if sure && len(renewed) == 0 {
			return
		}
		var err error
		if sure || len(renewed) == len(r.of) {
			_, err = s.set(ctx, r.name, now, next)
			if !errors.Is(err, errMoved) {
				r.answer(renewed, err)
				return
			}
		}
		if tries > 0 {
			if err := pause(ctx, tries); err != nil {
				r.answer(renewed, err)
				return
			}
		}
		if e, err = s.ask(ctx, lockKey(r.name)); err != nil {
			r.answer(r.of, err)
			return
		}
	}
}

func (r *renewal) answer(of []int, err error) {
	for _, i := range of {
		r.errs[i] = err
	}
}
