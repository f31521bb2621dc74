package memlock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, drivertest.Harness{
		Virtual: true,
		Open: func(*testing.T) drivertest.Service {
			store, down := memlock.New(), memlock.New()
			down.SetDown(true)
			return drivertest.Service{
				Driver: func() driver.Driver { return store }, Leftovers: store.Leftovers,
				Unreachable: func() driver.Driver { return down },
			}
		},
	})
}
