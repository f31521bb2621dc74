package memlock

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	drivertest.RunInBubble(t, func(testing.TB) drivertest.Config { return service(New()) })
}

// service is what the suite can do to a Store.
func service(s *Store) drivertest.Config {
	return drivertest.Config{
		Driver: func() driver.Driver { return s },
		Unreachable: func() driver.Driver {
			down := New()
			down.SetDown(true)
			return down
		},
		Overwrite: func(name string) {
			s.Steal(name)
			s.Renew(context.Background(), []driver.Claim{{Name: name, Token: "thief", TTL: time.Hour}}) // without expiry
		},
		Delete: s.Lose,
		Leftovers: func() (all []string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for name, r := range s.names {
				all = append(all, fmt.Sprintf("%s: %d holders, %d in the queue", name, len(r.holders), len(r.queue)))
			}
			return all
		},
		Through: func() (driver.Driver, []drivertest.Wire) {
			link := drivertest.NewLink(s)
			return link, []drivertest.Wire{wire{link, s}}
		},
	}
}

// wire is a Link whose black hole is that of the Store: it holds up the looks of a Wait under way.
type wire struct {
	*drivertest.Link
	store *Store
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
