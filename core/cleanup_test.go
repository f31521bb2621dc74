package core_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// The answer to the first send comes late, while the second one is under way, and says "granted".
// The second one cannot be sent. Then the caller leaves.
func TestAGrantThatIsHeardLateByACallThatGivesUpIsGivenBack(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Next(lab.OpAcquire, lab.ReplyHeldBack)
		b.link.All(lab.Refused, lab.OpAcquire, lab.OpWait)
		w := b.call(b.locks)
		time.Sleep(1500 * time.Millisecond) // the first send is given up, the others are refused
		b.link.Deliver()                    // "granted", for nobody who waits
		synctest.Wait()
		w.cancel()
		b.eventually("it returns", w.ended)
		b.is(w.failed(), context.Canceled)
		time.Sleep(time.Second)
		b.free()
	})
}

// The release of a lease with WithMinHold is not answered, nor was one of the commands that
// acquired it. What is repeated to clean up must not free the name before its time.
func TestCleanUpKeepsTheNameForItsMinHold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Next(lab.OpAcquire, lab.RequestLost)
		x, err := b.locks.Acquire(b.Context(), "name", core.WithMinHold(time.Minute))
		b.ok(err)
		b.link.All(lab.RequestLost, lab.OpRelease)
		b.is(x.Release(b.Context()), core.ErrUnavailable)
		b.link.All(lab.Delivered)
		time.Sleep(5 * time.Second)
		b.taken(b.other(), "name")
	})
}

// A client whose calls do not end with their context keeps a connection for each clean-up that was
// left behind.
func TestCleanUpInAnOutageTakesFewConnections(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.All(lab.RequestLate, lab.OpAcquire)
		for range 8 {
			ctx, cancel := context.WithTimeout(b.Context(), 50*time.Millisecond)
			_, err := b.locks.TryAcquire(ctx, "name")
			cancel()
			b.is(err, core.ErrUnavailable)
		}
		b.link.Deliver()
		b.link.All(lab.HeldBack)
		time.Sleep(20 * time.Second)
		b.link.All(lab.Delivered)
		if n := b.link.Deliver(); n > 8 {
			b.Errorf("%d releases are under way at once", n)
		}
	})
}

// A backend that cannot line anybody up says so, with an error of its own. That is no command
// whose outcome is open.
func TestAWaitThatFailsBesideAnAnswerCostsNoCleanUp(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		b.link.Next(lab.OpWait, lab.ReplyReset)
		w := b.call(b.locks)
		time.Sleep(time.Minute) // lined up again, answered, long since
		w.cancel()
		synctest.Wait()
		sent := b.commands()
		time.Sleep(ttl)
		if n := b.commands() - sent; n > 3 {
			b.Errorf("%d commands for a place that was in doubt a minute ago", n)
		}
		b.ok(holder.Release(b.Context()))
	})
}

// The replies to many calls are lost at once, as in a failover. Clean-up is answered, but has a way
// of 20 ms there and back.
func TestCleanUpBehindManyCallsIsDoneWithinASecond(t *testing.T) {
	t.Parallel()
	names := named("name", 400)
	virtual(t, func(b *bench) {
		b.link.All(lab.ReplyLost, lab.OpAcquire)
		b.link.Delay(10*time.Millisecond, 10*time.Millisecond)
		b.abandon(b.locks, names)
		time.Sleep(time.Second)
		if taken := b.takenOf(names); taken > 0 {
			b.Errorf("%d of %d names are taken after a second", taken, len(names))
		}
	})
}

// named are so many names.
func named(what string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(what, "-", i))
	}
	return names
}

// abandon asks for all the names at once, and gives up without an answer.
func (b *bench) abandon(locks *core.Locker, names []string) {
	var calls sync.WaitGroup
	for _, name := range names {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(b.Context(), 300*time.Millisecond)
			defer cancel()
			b.is(second(locks.TryAcquire(ctx, name)), core.ErrUnavailable)
		})
	}
	calls.Wait()
}

// takenOf is how many of the names another process cannot have.
func (b *bench) takenOf(names []string) (n int) {
	there := b.other()
	for _, name := range names {
		if x, err := there.TryAcquire(b.Context(), name); err != nil {
			n++
		} else {
			b.ok(x.Release(b.Context()))
		}
	}
	return n
}
