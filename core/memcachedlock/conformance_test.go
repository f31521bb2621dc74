package memcachedlock_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/memcachedlock"
)

// Each case has a prefix of its own, as long as one may be.
func TestConformanceOnMemcached(t *testing.T) {
	t.Parallel()
	addr := servers.Memcached(t).Addr()
	var cases atomic.Int64
	drivertest.Run(t, drivertest.Harness{Open: func(t *testing.T) drivertest.Service {
		prefix := fmt.Sprintf("%s%d:", strings.Repeat("p", 45), 1000+cases.Add(1))
		other := dial(t, addr)
		return drivertest.Service{
			Driver: func() driver.Driver {
				return memcachedlock.New(dial(t, addr), memcachedlock.WithPrefix(prefix))
			},
			Overwrite: func(name string) {
				if err := other.Set(&memcache.Item{Key: prefix + name, Value: []byte("not holdfast's")}); err != nil {
					t.Fatal(err)
				}
			},
			Delete: func(name string) {
				if err := other.Delete(prefix + name); err != nil {
					t.Fatal(err)
				}
			},
		}
	}})
}
