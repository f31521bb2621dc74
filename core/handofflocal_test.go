package core_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// stale is a hand-off of "name" that somebody has come with already.
func (b *bench) stale() core.Handoff {
	b.Helper()
	there := b.other()
	handoff := b.detach(b.acquire(there, "name"))
	b.gets(there.Attach(b.Context(), handoff))
	return handoff
}

// A call with a hand-off asks beside the line of its name. In an outage it must not take the
// name from whoever of this process has it, nor undo the line in which others wait.
func TestAStaleHandoffGoesLocalBesideNobody(t *testing.T) {
	t.Parallel()
	for _, fate := range []lab.Fate{lab.Refused, lab.RequestLost} {
		for _, wait := range []bool{true, false} {
			falling(t, func(b *bench) {
				local, handoff := b.localOnly(), b.stale()
				x := b.acquire(b.locks, "name")
				waiting := b.call(b.locks)
				b.link.All(fate)
				if !wait {
					b.is(second(local.Attach(b.Context(), handoff, core.WithWait(0))), core.ErrHeld)
				}
				came := b.coming(local, handoff)
				b.eventually("its attempt is over", func() bool { return b.link.Calls(lab.OpAcquire) > 0 })
				b.ok(x.Err())
				if came.ended() {
					b.Fatalf("two leases at once: %v, %v", came.lease, came.err)
				}
				b.link.All(lab.Delivered)
				b.ok(x.Release(b.Context()))
				first, then := waiting, came // places in the queue die in the outage, so whoever asks first
				b.eventually("one of them is served", func() bool {
					if came.ended() {
						first, then = came, waiting
					}
					return first.ended()
				})
				if then.ended() {
					b.Fatal("two leases at once")
				}
				b.ok(first.granted().Release(b.Context()))
				b.eventually("and then the other one", then.ended)
				b.ok(then.granted().Release(b.Context()))
				b.free()
			})
		}
	}
}

func TestADegradedLeaseCannotBeDetached(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		b.link.All(lab.Refused)
		x := b.acquire(b.localOnly(), "name")
		b.degraded(x)
		b.is(second(x.Detach(b.Context(), keep)), core.ErrUnavailable)
		b.ok(x.Err()) // it stands
		b.ok(x.Release(b.Context()))
	})
}
