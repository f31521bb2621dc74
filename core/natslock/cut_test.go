package natslock

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-go/holdfast/core/driver"
)

// cuts has it answer every question that was asked so far once as nats-server 2.11 does where one of the keys is written
// meanwhile: with so many messages, and that one was not found.
func (r *replica) cuts(t *testing.T, s *Store, after int) {
	t.Helper()
	r.freeze(t, s)
	r.mu.Lock()
	defer r.mu.Unlock()
	for question, all := range r.old {
		missed := &nats.Msg{Header: nats.Header{"Status": {"404"}, "Description": {"Message Not Found"}}}
		r.old[question] = append(all[:min(after, len(all)-1):after], missed)
	}
}

// Before nats-server 2.12, a read can miss a key that is written meanwhile, as that of a name that others share is: it says so
// or, a moment earlier, simply leaves it out. Neither is the end of a lease, or of a place in the queue.
func TestAKeyThatAReadHasMissedIsNotGone(t *testing.T) {
	t.Parallel()
	near := open(t)
	r, far := behind(t, near)
	far.copies.Store(1)
	mine := reader("name", "mine")
	verify, waits := mine, minute("name", "waits")
	verify.TTL = 0
	_, _ = far.look(t.Context(), mine, false) // the questions are known now
	_, _ = far.locks(t.Context(), map[string]*renewal{lockKey(mine.Name): {}})
	for how, misses := range map[string]func(){
		"cut":      func() { r.cuts(t, near, 0) },
		"left out": func() { r.freeze(t, near) },
	} {
		for what, call := range map[string]func() error{
			"a renewal":      func() error { return far.Renew(t.Context(), []driver.Claim{mine})[0] },
			"a verification": func() error { return far.Renew(t.Context(), []driver.Claim{verify})[0] },
			"a release":      func() error { return far.Release(t.Context(), mine) },
		} {
			misses()
			granted(t, near, mine)
			if err := call(); err != nil {
				t.Errorf("%s, %s: %v", what, how, err)
			}
			_ = near.Release(t.Context(), mine)
		}
	}
	granted(t, near, mine)
	near.queues(t, waits)
	before := near.seen(t, waits).own.slot
	r.cuts(t, near, 1) // the lock was there
	_, _, _ = far.queue(t.Context(), waits)
	if now := near.seen(t, waits); len(now.queue) != 1 || now.own.slot != before {
		t.Errorf("%d entries in the queue", len(now.queue))
	}
}
