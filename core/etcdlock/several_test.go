package etcdlock

import (
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

func reader(token string) driver.Claim {
	return driver.Claim{Name: "name", Token: token, TTL: time.Minute, Shared: true}
}

func permit(token string) driver.Claim {
	return driver.Claim{Name: "name", Token: token, TTL: time.Minute, Limit: 2}
}

func take(t *testing.T, s *store, c driver.Claim) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), c)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return g
}

// stands fails the test unless the store has n keys, with a lease each.
func stands(t *testing.T, s *store, n int, what string) {
	t.Helper()
	found, err := s.client.Get(t.Context(), s.prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	noError(t, err)
	kept, err := s.client.Leases(t.Context())
	noError(t, err)
	if found.Count != int64(n) || len(kept.Leases) != n {
		t.Errorf("%s: %d keys and %d leases; want %d of each", what, found.Count, len(kept.Leases), n)
	}
}

func TestWithTheLastHolderGoesTheirLock(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	for what, claim := range map[string]func(string) driver.Claim{"readers": reader, "permits": permit} {
		one, two := claim("one"), claim("two")
		take(t, s, one)
		take(t, s, two)
		stands(t, s, 3, what)
		noError(t, s.Release(t.Context(), one))
		stands(t, s, 2, what)
		noError(t, s.Release(t.Context(), two))
		stands(t, s, 0, what)
	}
}

// The lock of several holders outlasts each of them, so it is still there when they have died.
func TestTheLockOfDeadHoldersIsInNobodysWay(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	claims := map[string]driver.Claim{
		"a writer": {Name: "name", Token: "next", TTL: time.Minute}, "a reader": reader("next"), "a permit": permit("next"),
	}
	for what, next := range claims {
		for dead, claim := range map[string]func(string) driver.Claim{"a dead reader": reader, "a dead permit": permit} {
			gone := claim("dead")
			before := take(t, s, gone)
			now, err := s.look(t.Context(), gone)
			noError(t, err)
			noError(t, s.leave(t.Context(), now.mine.key)) // as at the end of its time
			if info, err := s.Inspect(t.Context(), "name"); err != nil || info.Held {
				t.Errorf("%s is shown: %+v, %v", dead, info, err)
			}
			if g := take(t, s, next); g.Fence < before.Fence && g.Fence > 0 {
				t.Errorf("%s after %s: fence %d after %d", what, dead, g.Fence, before.Fence)
			}
			if err := s.Renew(t.Context(), []driver.Claim{gone})[0]; !errors.Is(err, driver.ErrNotOwner) {
				t.Errorf("%s after %s, whose renewal is %v", what, dead, err)
			}
			noError(t, s.Release(t.Context(), next))
		}
	}
	stands(t, s, 0, "left")
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
		// Its own command that was sent again: what came first must not be put under another lease.
		{"a reader that has it already", []driver.Claim{reader("one")}, []driver.Claim{reader("late")}, reader("late")},
		{"a permit that has it already", nil, []driver.Claim{permit("late")}, permit("late")},
	} {
		s := open(t, addr, WithPrefix(fmt.Sprint(i, "/")))
		for _, other := range c.stands {
			take(t, s, other)
		}
		now, err := s.look(t.Context(), c.late)
		noError(t, err)
		if _, free, err := s.judge(t.Context(), c.late, now); !free {
			t.Fatalf("%s: not free: %v", c.what, err)
		}
		for _, other := range c.meanwhile {
			take(t, s, other)
		}
		var made leases
		if answer, err := s.take(t.Context(), c.late, now, &made); err != nil || answer.Succeeded {
			t.Errorf("%s: granted, or %v", c.what, err)
		}
	}
}

func TestADeadLockIsNotClearedUnderWhoJoinsIt(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	dead, joins := reader("dead"), reader("joins")
	take(t, s, dead)
	now, err := s.look(t.Context(), dead)
	noError(t, err)
	noError(t, s.leave(t.Context(), now.mine.key))
	writer := driver.Claim{Name: "name", Token: "writer", TTL: time.Minute}
	now, err = s.look(t.Context(), writer)
	noError(t, err)
	take(t, s, joins)
	noError(t, s.clear(t.Context(), writer, now))
	noError(t, s.Renew(t.Context(), []driver.Claim{joins})[0])
}

func TestTheLastButOneWhoLeavesTakesNobodysLock(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	leaves, joins := reader("leaves"), reader("joins")
	take(t, s, leaves)
	now, err := s.look(t.Context(), leaves)
	noError(t, err)
	take(t, s, joins) // after the other has seen that it is alone
	noError(t, s.part(t.Context(), leaves, now, *now.mine))
	noError(t, s.Renew(t.Context(), []driver.Claim{joins})[0])
}

// A holder is trusted no longer than the lock lasts, which is as its first holder made it.
func TestALeaseIsNoLongerThanThatOfTheLockItJoins(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	long := reader("long")
	long.TTL = time.Hour
	take(t, s, reader("first"))
	if g := take(t, s, long); g.TTL != groupLife {
		t.Errorf("granted for %s", g.TTL)
	}
	if g := take(t, s, reader("another")); g.TTL != 0 {
		t.Errorf("one that fits is granted for %s", g.TTL)
	}
}

// etcd's own Mutex.Unlock deletes by the key's name alone: if its answer is lost, and it is sent again, it ends a
// later lock of the same session (etcd-io/etcd#22082).
func TestAReleaseThatIsSentAgainEndsNoLaterLease(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	kinds := map[string]driver.Claim{
		"exclusive": {}, "shared": {Shared: true}, "limited": {Limit: 2}, "marked": {Mark: true, Dedup: time.Hour},
		"kept": {Keep: time.Minute}, "handed off": {Keep: time.Minute, Handoff: "handoff-0000000000001"},
	}
	for what, first := range kinds {
		first.Name, first.Token, first.TTL = what, "first", time.Minute
		take(t, s, first)
		seen, err := s.look(t.Context(), first)
		noError(t, err)
		noError(t, s.Release(t.Context(), first)) // whose answer is lost
		second := driver.Claim{Name: what, Token: "second", TTL: time.Minute}
		if first.Keep > 0 {
			now, err := s.look(t.Context(), second)
			noError(t, err)
			noError(t, s.leave(t.Context(), now.lock)) // its time is over
		}
		take(t, s, second)
		if err := s.Release(t.Context(), first); !errors.Is(err, driver.ErrNotOwner) {
			t.Errorf("%s: %v", what, err)
		}
		err = s.free(t.Context(), first, seen) // the second half of a release that was on its way for long
		if err == nil {
			t.Errorf("%s: a release that comes late is confirmed", what)
		}
		noError(t, s.Renew(t.Context(), []driver.Claim{second})[0])
	}
}
