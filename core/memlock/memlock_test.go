package memlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	drivertest.RunInBubble(t, func(testing.TB) drivertest.Config { return service(memlock.New()) })
}

// service is what the suite can do to a Store.
func service(s *memlock.Store) drivertest.Config {
	return drivertest.Config{
		Driver: func() driver.Driver { return s },
		Unreachable: func() driver.Driver {
			down := memlock.New()
			down.SetDown(true)
			return down
		},
		Overwrite: func(name string) {
			s.Steal(name)
			s.Renew(context.Background(), []driver.Claim{{Name: name, Token: "thief", TTL: time.Hour}}) // without expiry
		},
		Delete:    s.Lose,
		Leftovers: s.Leftovers,
		Through: func() (driver.Driver, []drivertest.Wire) {
			link := drivertest.NewLink(s)
			return link, []drivertest.Wire{wire{link, s}}
		},
	}
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
