package etcdlock

import (
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// A proxy can send a transaction twice: what came first must not be put under another lease.
func TestAClaimThatIsExecutedTwiceKeepsItsFirstLease(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	for limit, beside := range map[int]bool{driver.Readers: true, 2: false} {
		c := driver.Claim{Name: fmt.Sprint("name", limit), Token: "token", TTL: time.Minute, Limit: limit}
		if beside {
			other := c
			other.Token = "other"
			take(t, s, other)
		}
		now, err := s.read(t.Context(), c)
		noError(t, err)
		take(t, s, c)
		if answer, err := s.claim(t.Context(), c, now, clientv3.NoLease); err != nil || answer.Succeeded {
			t.Errorf("limit %d: granted, or %v", limit, err)
		}
	}
}

func take(t *testing.T, s *Store, c driver.Claim) {
	t.Helper()
	_, err := s.Acquire(t.Context(), c)
	noError(t, err)
}
