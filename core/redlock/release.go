package redlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Release implements driver.Driver. It asks every node. It returns as soon as a quorum has freed the
// name, so that others can have it, or as soon as it is clear that a quorum cannot have had it. The
// remaining requests go on in the background.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return err
	}
	b := s.known(c)
	err := s.release(ctx, c, b)
	if b.earlier != nil {
		_ = s.release(ctx, c, b.earlier) // it owns nothing; this waits until it is at no quorum any more
	}
	return err
}

func (s *Store) release(ctx context.Context, c driver.Claim, b *ballot) (err error) {
	b.mu.Lock()
	b.end(func(*seat) bool { return true })
	b.mu.Unlock()
	settled := false
	b.await(ctx, func() bool {
		var all bool
		settled, all, err = b.verdict()
		return settled || all
	})
	if settled {
		s.forget(c, b)
	}
	return err
}

// verdict is what the releases came to so far. It is settled if no further answer can change
// it; all says that every node has been asked since the last Release. The caller holds the
// mutex.
func (b *ballot) verdict() (settled, all bool, err error) {
	freedAt, absentAt, sent := 0, 0, false
	var errs []error
	all = true
	for i := range b.seats {
		switch seat := &b.seats[i]; seat.left {
		case freed:
			freedAt++
		case absent:
			absentAt++
		default:
			all = all && seat.tried
			sent = sent || seat.doubt || !seat.tried || seat.freeing // or is sent again
			errs = append(errs, seat.err)
		}
	}
	switch {
	case freedAt >= b.store.quorum:
		return true, all, nil
	case absentAt > len(b.seats)-b.store.quorum:
		left := b.rank == 0 || absentAt+freedAt >= b.store.quorum // of an even number, a quorum is more than that
		return left, all, driver.ErrNotOwner
	}
	err = errors.Join(errs...)
	if err == nil {
		err = errNoAnswer
	}
	if !sent && freedAt+absentAt == 0 {
		return false, all, driver.NotSent(err)
	}
	return false, all, noQuorum(err)
}

// free releases the ballot at node i, in the background. The caller holds the mutex.
func (b *ballot) free(i int) {
	seat := &b.seats[i]
	seat.asked = true
	if seat.freeing {
		seat.again = true
		return
	}
	seat.freeing = true
	b.store.tasks.Go(func() { b.freeing(i) })
}

// Clean-up at a node: how long it may take in all, and the pause after the first failure;
// each further pause is four times as long, up to the last. After that it is swept, more and
// more seldom, until the TTL ends.
const (
	maxCleanUp = 2 * time.Second
	firstPause = 10 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

func (b *ballot) freeing(i int) {
	ctx, cancel := context.WithTimeout(context.Background(), maxCleanUp)
	defer cancel()
	pause := firstPause
	for {
		err := b.release(ctx, i)
		again, failed := b.took(i, err)
		switch {
		case again:
			continue
		case !failed:
			return
		}
		timer := time.NewTimer(pause - rand.N(pause/4)) //nolint:gosec // G404: jitter is no secret
		select {
		case <-timer.C:
			pause = min(4*pause, lastPause)
		case <-ctx.Done():
			timer.Stop()
			b.gaveUp(i)
			return
		}
	}
}

func (b *ballot) release(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, patience(ctx))
	defer cancel()
	b.mu.Lock()
	claim := b.at(b.asked)
	b.mu.Unlock()
	return b.store.nodes[i].Release(ctx, claim)
}

// took takes the answer to a release. The first certain one stands: one that follows an
// acquire that was late says nothing about who had the name. It has failed if it is to be
// sent again, which is no use where there can be nothing.
func (b *ballot) took(i int, err error) (again, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seat := &b.seats[i]
	again, seat.again = seat.again, false
	more := again || seat.flying+seat.waiting > 0 // releases: what was under way may have taken the name after this one
	switch {
	case err != nil && !errors.Is(err, driver.ErrNotOwner):
		failed = b.rank > 0 || seat.taken() || seat.flying > 0
		seat.err = err
		seat.doubt = seat.doubt || driver.Explain(err).Open()
	case seat.left != unknown:
	case more:
		seat.doubt = seat.doubt || err == nil
	case err != nil && !seat.doubt:
		seat.left = absent
	default: // "not the owner" after one that went unanswered: that one has freed it
		seat.left = freed
	}
	seat.tried = !more
	seat.freeing = again || failed
	close(b.stirred)
	b.stirred = make(chan struct{})
	return again, failed
}

// gaveUp ends the clean-up at a node, unless somebody has asked for another one meanwhile.
func (b *ballot) gaveUp(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seat := &b.seats[i]
	seat.freeing = false
	switch {
	case seat.again:
		seat.again = false
		b.free(i)
	case seat.left == unknown && b.over: // it may be back long before the TTL ends
		seat.stray = time.Now()
		b.sweep(i, b.most)
	}
}
