package etcdlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/etcdlock"
)

// A release that leaves a marker and a name taken makes two leases before its transaction. If that is never sent, they keep nothing,
// for as long as the marker's window.
func TestAReleaseThatIsNotSentLeavesNoLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for what, stopAt := range map[string]int{"the second lease is refused": 2, "its context ends behind the leases": 3} {
		grants := 0
		ctx, leave := context.WithCancel(t.Context())
		store := etcdlock.New(intercepted(t, w.server.Addr(), func(ctx context.Context, method string, invoke func(context.Context) error) error {
			if method != "LeaseGrant" {
				return invoke(ctx)
			}
			grants++ // the first one is of the acquire
			if grants == stopAt+1 && stopAt == 2 {
				return errors.New("refused")
			}
			err := invoke(ctx)
			if grants == stopAt && stopAt == 3 {
				leave()
			}
			return err
		}))
		c := driver.Claim{Name: "name", Token: "token", TTL: time.Hour}
		_, err := store.Acquire(ctx, c)
		ok(t, err)
		c.Keep, c.Dedup, c.Scope = time.Hour, time.Hour, "scope"
		if err := store.Release(ctx, c); err == nil {
			t.Errorf("%s, and the release is done", what)
		}
		eventually(t, what+": the holder's lease is left only", func() bool { return w.leases(t) == 1 })
		c.Keep, c.Dedup = 0, 0
		ok(t, store.Release(t.Context(), c))
		leave()
	}
}
