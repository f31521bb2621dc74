package core_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest"
)

// stale is a hand-off of "name" that somebody has come with already.
func (b *bench) stale() core.Handoff {
	b.Helper()
	there := b.other()
	handoff := b.detach(b.acquire(there, "name"))
	x, err := there.Attach(b.Context(), handoff)
	b.ok(err)
	b.ok(x.Release(b.Context()))
	return handoff
}

// A call with a hand-off asks beside the line of its name. In an outage it must not take the
// name from whoever of this process has it, nor undo the line in which others wait.
func TestAStaleHandoffGoesLocalBesideNobody(t *testing.T) {
	t.Parallel()
	for _, fate := range []drivertest.Fate{drivertest.Refused, drivertest.RequestLost} {
		for _, wait := range []bool{true, false} {
			virtual(t, func(b *bench) {
				local, handoff := b.localOnly(), b.stale()
				x := b.acquire(b.locks, "name")
				waiting := b.call(b.locks)
				b.link.All(fate)
				if !wait {
					_, err := local.Attach(b.Context(), handoff, core.WithWait(0))
					b.is(err, core.ErrHeld)
				}
				came := b.coming(local, handoff)
				b.eventually("its attempt is over", func() bool { return b.link.Calls(drivertest.OpAcquire) > 0 })
				b.ok(x.Err())
				if came.ended() {
					b.Fatalf("two leases at once: %v, %v", came.lease, came.err)
				}
				b.link.All(drivertest.Delivered)
				b.ok(x.Release(b.Context()))
				b.eventually("the first of those who wait is served", waiting.ended)
				b.ok(waiting.granted().Release(b.Context()))
				b.eventually("whoever came with the hand-off is served", came.ended)
				b.ok(came.granted().Release(b.Context()))
				b.free()
			})
		}
	}
}
