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
	v := s.known(c)
	err := s.release(ctx, c, v)
	if v.earlier != nil {
		_ = s.release(ctx, c, v.earlier) // it owns nothing; this waits until it is at no quorum any more
	}
	return err
}

func (s *Store) release(ctx context.Context, c driver.Claim, v *vote) (err error) {
	v.mu.Lock()
	v.end(func(*slot) bool { return true })
	v.mu.Unlock()
	settled := false
	v.await(ctx, func() bool {
		var all bool
		settled, all, err = v.verdict()
		return settled || all
	})
	if settled {
		s.forget(c, v)
	}
	return err
}

// verdict is what the releases came to so far. It is settled if no further answer can change
// it; all says that every node has been asked since the last Release. The caller holds the
// mutex.
func (v *vote) verdict() (settled, all bool, err error) {
	freedAt, absentAt, sent := 0, 0, false
	var errs []error
	all = true
	for i := range v.slots {
		switch slot := &v.slots[i]; slot.left {
		case freed:
			freedAt++
		case absent:
			absentAt++
		default:
			all = all && slot.tried
			sent = sent || slot.doubt || !slot.tried || slot.freeing // or is sent again
			errs = append(errs, slot.err)
		}
	}
	switch {
	case freedAt >= v.store.quorum:
		return true, all, nil
	case absentAt > len(v.slots)-v.store.quorum:
		left := v.rank == 0 || absentAt+freedAt >= v.store.quorum // of an even number, a quorum is more than that
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

// free releases the vote at node i, in the background. The caller holds the mutex.
func (v *vote) free(i int) {
	slot := &v.slots[i]
	slot.asked = true
	if slot.freeing {
		slot.again = true
		return
	}
	slot.freeing = true
	v.store.tasks.Go(func() { v.freeing(i) })
}

// Clean-up at a node: how long it may take in all, and the pause after the first failure;
// each further pause is four times as long, up to the last. After that it is swept, more and
// more seldom, until the TTL ends.
const (
	maxCleanUp = 2 * time.Second
	firstPause = 10 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

func (v *vote) freeing(i int) {
	ctx, cancel := context.WithTimeout(context.Background(), maxCleanUp)
	defer cancel()
	pause := firstPause
	for {
		err := v.release(ctx, i)
		again, failed := v.took(i, err)
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
			v.gaveUp(i)
			return
		}
	}
}

func (v *vote) release(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, patience(ctx))
	defer cancel()
	v.mu.Lock()
	claim := v.at(v.asked)
	v.mu.Unlock()
	return v.store.nodes[i].Release(ctx, claim)
}

// took takes the answer to a release. The first certain one stands: one that follows an
// acquire that was late says nothing about who had the name. It has failed if it is to be
// sent again, which is no use where there can be nothing.
func (v *vote) took(i int, err error) (again, failed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	slot := &v.slots[i]
	again, slot.again = slot.again, false
	more := again || slot.flying+slot.waiting > 0 // releases: what was under way may have taken the name after this one
	switch {
	case err != nil && !errors.Is(err, driver.ErrNotOwner):
		failed = v.rank > 0 || slot.taken() || slot.flying > 0
		slot.err = err
		slot.doubt = slot.doubt || driver.Explain(err).Open()
	case slot.left != unknown:
	case more:
		slot.doubt = slot.doubt || err == nil
	case err != nil && !slot.doubt:
		slot.left = absent
	default: // "not the owner" after one that went unanswered: that one has freed it
		slot.left = freed
	}
	slot.tried = !more
	slot.freeing = again || failed
	close(v.stirred)
	v.stirred = make(chan struct{})
	return again, failed
}

// gaveUp ends the clean-up at a node, unless somebody has asked for another one meanwhile.
func (v *vote) gaveUp(i int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	slot := &v.slots[i]
	slot.freeing = false
	switch {
	case slot.again:
		slot.again = false
		v.free(i)
	case slot.left == unknown && v.over: // it may be back long before the TTL ends
		slot.stray = time.Now()
		v.sweep(i, v.most)
	}
}
