package contend

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/internal/tasks"
	"github.com/holdfast-go/holdfast/core/internal/term"
)

// free grants everything.
type free struct {
	driver.Driver

	fence atomic.Uint64
}

func (d *free) Acquire(_ context.Context, c driver.Claim) (driver.Grant, error) {
	n := max(c.Fences, 1)
	return driver.Grant{Fence: d.fence.Add(uint64(n)) - uint64(n) + 1, Fences: n}, nil
}
func (d *free) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return d.Acquire(ctx, c)
}
func (d *free) Release(context.Context, driver.Claim) error       { return nil }
func (d *free) Renew(_ context.Context, c []driver.Claim) []error { return make([]error, len(c)) }
func (d *free) Capabilities() driver.Capabilities {
	return driver.Capabilities{Punctual: true, Forgets: true, Hears: true, Block: true, Fence: true}
}

// work counts who works at the same time.
type work struct{ stopped atomic.Bool }

func (w *work) Stop(term.Loss) { w.stopped.Store(true) }

func (w *work) Values() context.Context { return nil }

func room(t testing.TB, d driver.Driver) *Room {
	t.Helper()
	k := new(keeper)
	k.Room = NewRoom(context.Background(), call.New(d, clock.New(), tasks.New()), k)
	return k.Room
}

type keeper struct{ *Room }

func (*keeper) Renewed(*hold.Hold, time.Duration, error) {}

func want(name string, ttl time.Duration) *hold.Want {
	return &hold.Want{Name: name, Terms: &hold.Terms{Wish: claim.Wish{TTL: ttl}, Turn: term.Turn{Every: ttl / 3}}, Work: new(work)}
}

func BenchmarkPairOverADriverThatDoesNothing(b *testing.B) {
	r, w := room(b, new(free)), want("n", 30*time.Second)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		h, err := get(ctx, r, w, Forever)
		if err != nil {
			b.Fatal(err)
		}
		leave(ctx, r, h, claim.Left{})
	}
}

// busy is held for some rounds.
type busy struct {
	free

	rounds int
}

func (d *busy) Acquire(context.Context, driver.Claim) (driver.Grant, error) {
	return driver.Grant{}, &driver.Held{}
}

func (d *busy) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if d.rounds--; d.rounds < 0 {
		return d.free.Acquire(ctx, c)
	}
	<-ctx.Done()
	return d.Acquire(ctx, c)
}

func TestALongWaitLeavesNothingAtItsRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := room(t, &busy{rounds: 10})
		life := &lab.Followed{Context: t.Context()}
		r.life = life
		h, err := get(t.Context(), r, want("n", time.Second), Forever)
		synctest.Wait()
		if n := life.Followers(); h == nil || n != 0 {
			t.Errorf("%v, and %d are left", err, n)
		}
		leave(t.Context(), r, h, claim.Left{})
	})
}

// Whoever closes has poked all who wait, before this call does.
func TestWhoBeginsToWaitInARoomThatIsClosedLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := room(t, new(free))
		h, err := get(t.Context(), r, want("n", time.Second), Forever)
		if err != nil {
			t.Fatal(err)
		}
		var closes context.CancelFunc
		r.life, closes = context.WithCancel(t.Context())
		closes()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if _, err = get(ctx, r, want("n", time.Second), Forever); !errors.Is(err, ErrClosed) || time.Since(began) > 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		leave(t.Context(), r, h, claim.Left{})
	})
}

// giver is a guest that the holder leaves as it looks.
type giver struct {
	guest

	leave func()
}

func (g *giver) Look() bool {
	g.leave()
	synctest.Wait()
	return false
}

func TestWhoIsGivenAHoldAtTheEndOfItsPatienceHasIt(t *testing.T) {
	t.Parallel()
	for range 20 { // what comes first is the scheduler's choice
		synctest.Test(t, func(t *testing.T) {
			r := room(t, new(free))
			h, err := get(t.Context(), r, want("n", time.Second), Forever)
			if err != nil {
				t.Fatal(err)
			}
			w := want("n", time.Second)
			g := &giver{guest{ctx: t.Context(), room: r, want: w}, sync.OnceFunc(func() { leave(t.Context(), r, h, claim.Left{}) })}
			h, err = r.Get(t.Context(), Call{w, time.Minute, clock.Never, r.Port.Clock.Read()}, g)
			if h == nil || err != nil {
				t.Fatalf("%v, %v", h, err)
			}
			leave(t.Context(), r, h, claim.Left{})
		})
	}
}
