package oldadapter_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/internal/oldadapter"
	old "github.com/holdfast-go/holdfast/core/internal/olddriver"
	memlock "github.com/holdfast-go/holdfast/core/internal/oldmemory"
)

func TestConformanceOfTheOldMemoryBackend(t *testing.T) {
	t.Parallel()
	drivertest.RunInBubble(t, func(testing.TB) drivertest.Config {
		s := memlock.New()
		return drivertest.Config{
			Slow:   time.Millisecond, // a waiter asks before it stands in the queue
			Driver: func() driver.Driver { return oldadapter.New(s) },
			Unreachable: func() driver.Driver {
				down := memlock.New()
				down.SetDown(true)
				return oldadapter.New(down)
			},
			Overwrite: func(name string) {
				s.Steal(name)
				s.Renew(context.Background(), []old.Claim{{Name: name, Token: "thief", TTL: time.Hour}})
			},
			Delete: s.Lose,
			Through: func() (driver.Driver, []drivertest.Wire) {
				link := drivertest.NewLink(oldadapter.New(s))
				return link, []drivertest.Wire{wire{link, s}}
			},
		}
	})
}

// wire is a Link whose black hole is that of the Store: it holds up the looks of a Wait under way.
type wire struct {
	*drivertest.Link
	store *memlock.Store
}

func (w wire) BlackHole(on bool) {
	if on {
		w.store.SetDelay(time.Hour)
	} else {
		w.store.SetDelay(0)
	}
}

func (w wire) Heal() {
	w.Link.Heal()
	w.store.SetDelay(0)
}
