package core_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// hanging is a backend whose client ignores contexts. The first Waits, as many as most says, hang until free is closed.
type hanging struct {
	*memlock.Store
	most int64
	free chan struct{}

	hung, tries atomic.Int64
}

func (h *hanging) Capabilities() driver.Capabilities {
	can := h.Store.Capabilities()
	can.Punctual, can.Forgets = false, false
	return can
}

func (h *hanging) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	h.tries.Add(1)
	return h.Store.Acquire(ctx, c)
}

func (h *hanging) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if h.hung.Add(1) > h.most {
		h.hung.Add(-1)
		return h.Store.Wait(ctx, c)
	}
	<-h.free
	return driver.Grant{}, errors.New("at last")
}

// within runs f in virtual time, with a Locker of h and one of another process.
func (h *hanging) within(t *testing.T, f func(b *bench, other *core.Locker)) {
	t.Helper()
	virtual(t, func(b *bench) {
		h.Store, h.free = b.store, make(chan struct{})
		let := sync.OnceFunc(func() { close(h.free) })
		b.locks = locker(b.T, h)
		b.Cleanup(let) // also after a failure
		f(b, b.other())
		let()
		synctest.Wait()
		time.Sleep(time.Minute)
		if left := b.locks.Remains(); len(left) > 0 {
			b.Errorf("left: %v", left)
		}
	})
}

func TestAWaitThatHangsStarvesNobody(t *testing.T) {
	t.Parallel()
	h := &hanging{most: 1 << 20}
	h.within(t, func(b *bench, other *core.Locker) {
		const turns, most = 300, 256
		for i := range turns {
			holder := b.acquire(other, "name")
			w := b.call(b.locks)
			time.Sleep(5 * time.Second)
			b.ok(holder.Release(b.Context()))
			time.Sleep(time.Second)
			b.ok(w.granted().Release(b.Context()))
			if n := h.hung.Load(); n > min(int64(i)+1, most) {
				b.Fatalf("%d Waits hang after %d turns", n, i+1)
			}
		}
		if n := h.tries.Load(); n > 20*turns {
			b.Errorf("%d attempts", n)
		}
	})
}

// Attempts find the name taken or others first, as long as other processes queue.
func TestAWaitThatHangsIsFollowedByAnotherOneBesideAQueue(t *testing.T) {
	t.Parallel()
	h := &hanging{most: 1}
	h.within(t, func(b *bench, _ *core.Locker) {
		stop := make(chan struct{}, 1)
		var others sync.WaitGroup
		for range 3 { // each in a process of its own
			locks := b.other()
			others.Go(func() {
				for len(stop) == 0 {
					b.ok(locks.Do(b.Context(), "name", func(context.Context) error {
						time.Sleep(100 * time.Millisecond)
						return nil
					}))
				}
			})
		}
		time.Sleep(time.Second)
		w := b.call(b.locks)
		time.Sleep(2 * ttl)
		b.ok(w.granted().Release(b.Context()))
		stop <- struct{}{}
		others.Wait()
	})
}
