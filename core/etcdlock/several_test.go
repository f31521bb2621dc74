package etcdlock

import (
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

func reader(token string) driver.Claim {
	return driver.Claim{Name: "name", Token: token, TTL: time.Minute, Limit: driver.Readers}
}

func permit(token string) driver.Claim {
	return driver.Claim{Name: "name", Token: token, TTL: time.Minute, Limit: 2}
}

func take(t *testing.T, s *Store, c driver.Claim) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), c)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return g
}

// Between a look and the transaction that follows from it, others come and go.
func TestWhoComesBetweenALookAndItsTransactionIsRespected(t *testing.T) {
	t.Parallel()
	addr := servers.Etcd(t).Addr()
	for i, c := range []struct {
		what              string
		stands, meanwhile []driver.Claim
		late              driver.Claim
	}{
		{"a permit beside the last but one", []driver.Claim{permit("one")}, []driver.Claim{permit("two")}, permit("late")},
		{"a first permit beside a writer", nil, []driver.Claim{{Name: "name", Token: "writer", TTL: time.Minute}}, permit("late")},
		{"a first reader beside a permit", nil, []driver.Claim{permit("one")}, reader("late")},
		{"a first permit beside a reader", nil, []driver.Claim{reader("one")}, permit("late")},
		{"a writer beside a reader", nil, []driver.Claim{reader("one")}, driver.Claim{Name: "name", Token: "late", TTL: time.Minute}},
		// Its own command that was sent again: what came first must not be put under another lease.
		{"a reader that has it already", []driver.Claim{reader("one")}, []driver.Claim{reader("late")}, reader("late")},
		{"a permit that has it already", nil, []driver.Claim{permit("late")}, permit("late")},
	} {
		s := open(t, addr, WithPrefix(fmt.Sprint(i, "/")))
		for _, other := range c.stands {
			take(t, s, other)
		}
		now, err := s.read(t.Context(), c.late)
		noError(t, err)
		if _, free, err := s.judge(t.Context(), c.late, now); !free {
			t.Fatalf("%s: not free: %v", c.what, err)
		}
		for _, other := range c.meanwhile {
			take(t, s, other)
		}
		if answer, err := s.claim(t.Context(), c.late, now, clientv3.NoLease); err != nil || answer.Succeeded {
			t.Errorf("%s: granted, or %v", c.what, err)
		}
	}
}

// etcd's own Mutex.Unlock deletes by the key's name alone: if its answer is lost, and it is sent again, it ends a
// later lock of the same session (etcd-io/etcd#22082).
func TestAReleaseThatIsSentAgainEndsNoLaterLease(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	kinds := map[string]driver.Claim{
		"exclusive": {}, "shared": {Limit: driver.Readers}, "limited": {Limit: 2}, "marked": {Dedup: time.Hour},
		"kept": {Keep: time.Minute}, "handed off": {Keep: time.Minute, Handoff: "handoff-0000000000001"},
	}
	for what, first := range kinds {
		first.Name, first.Token, first.TTL = what, "first", time.Minute
		take(t, s, first)
		seen, err := s.read(t.Context(), first)
		noError(t, err)
		noError(t, s.Release(t.Context(), first)) // whose answer is lost
		second := driver.Claim{Name: what, Token: "second", TTL: time.Minute}
		if first.Keep > 0 {
			now, err := s.read(t.Context(), second)
			noError(t, err)
			noError(t, s.leave(t.Context(), now.lock)) // its time is over
		}
		take(t, s, second)
		if err := s.Release(t.Context(), first); !errors.Is(err, driver.ErrNotOwner) {
			t.Errorf("%s: %v", what, err)
		}
		err = s.end(t.Context(), first, seen) // the second half of a release that was on its way for long
		if err == nil {
			t.Errorf("%s: a release that comes late is confirmed", what)
		}
		noError(t, s.Renew(t.Context(), []driver.Claim{second})[0])
	}
}
