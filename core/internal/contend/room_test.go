package contend

import (
	"context"
	"errors"
	"sync"
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
	"github.com/holdfast-go/holdfast/core/memlock"
)

// guest is a call that goes when its room is closed, and the room's keeper.
type guest struct {
	*Room

	service *memlock.Store
	looks   func()
}

func newGuest() *guest {
	g := &guest{service: memlock.New(), looks: func() {}}
	g.Room = NewRoom(context.Background(), call.New(g.service, clock.New(), tasks.New()), g)
	return g
}

func (g *guest) Gone() error {
	if g.life.Err() != nil {
		return ErrClosed
	}
	return nil
}

func (g *guest) Until() <-chan struct{} { return nil }
func (g *guest) Heard(call.Reply)       {}
func (g *guest) Waits(*hold.Hold)       {}
func (g *guest) Long()                  {}

func (g *guest) Look() bool {
	g.looks()
	return false
}

func (g *guest) Renewed(*hold.Hold, time.Duration, error) {}
func (g *guest) Left(hold.Outcome, error)                 {}

func (g *guest) get(budget time.Duration) (*hold.Hold, error) {
	return g.Get(context.Background(), Call{want("n", time.Second), budget, clock.Never, g.Port.Clock.Read()}, g)
}

func (g *guest) leave(h *hold.Hold) {
	g.End(context.Background(), h, claim.Left{}, g.Port.Clock.Read(), g)
}

func want(name string, ttl time.Duration) *hold.Want {
	return &hold.Want{Name: name, Terms: &hold.Terms{Wish: claim.Wish{TTL: ttl}, Turn: term.Turn{Every: ttl / 3}}, Work: work{}}
}

type work struct{}

func (work) Stop(term.Loss)          {}
func (work) Values() context.Context { return nil }

func TestALongWaitLeavesNothingAtItsRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, life := newGuest(), &lab.Followed{Context: t.Context()}
		g.life = life
		if _, err := g.service.Acquire(t.Context(), driver.Claim{Name: "n", Token: "other", TTL: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		h, err := g.get(Forever)
		synctest.Wait()
		if n := life.Followers(); h == nil || n != 0 {
			t.Errorf("%v, and %d are left", err, n)
		}
		g.leave(h)
	})
}

// Whoever closes has poked all who wait, before this call does.
func TestWhoBeginsToWaitInARoomThatIsClosedLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGuest()
		h, err := g.get(Forever)
		if err != nil {
			t.Fatal(err)
		}
		var closes context.CancelFunc
		g.life, closes = context.WithCancel(t.Context())
		closes()
		began := time.Now()
		if _, err = g.get(time.Minute); !errors.Is(err, ErrClosed) || time.Since(began) > 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		g.leave(h)
	})
}

func TestWhoIsGivenAHoldAtTheEndOfItsPatienceHasIt(t *testing.T) {
	t.Parallel()
	for range 20 { // what comes first is the scheduler's choice
		synctest.Test(t, func(t *testing.T) {
			g := newGuest()
			h, err := g.get(Forever)
			if err != nil {
				t.Fatal(err)
			}
			g.looks = sync.OnceFunc(func() { // the holder leaves
				g.leave(h)
				synctest.Wait()
			})
			if h, err = g.get(time.Minute); h == nil || err != nil {
				t.Fatalf("%v, %v", h, err)
			}
			g.leave(h)
		})
	}
}
