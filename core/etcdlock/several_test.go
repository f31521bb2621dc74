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
	writer := func(token string) driver.Claim { return driver.Claim{Name: "name", Token: token, TTL: time.Minute} }
	marks := func(token string) driver.Claim {
		c := writer(token)
		c.Scope, c.Dedup = "scope", time.Hour
		return c
	}
	takes := func(c driver.Claim) func(s *Store) { return func(s *Store) { take(t, s, c) } }
	queues := func(c driver.Claim) func(s *Store) { return func(s *Store) { noError(t, queue(t, s, c)) } }
	nothing := func(*Store) {}
	for i, c := range []struct {
		what              string
		before, meanwhile func(s *Store)
		late              driver.Claim
	}{
		{"another took it", nothing, takes(writer("other")), writer("late")},
		{"another is in the queue", nothing, queues(writer("other")), writer("late")},
		{"the marker was left", nothing, func(s *Store) { take(t, s, marks("other")); noError(t, s.Release(t.Context(), marks("other"))) }, marks("late")},
		{"its entry was lost", queues(writer("late")), func(s *Store) {
			_, err := s.client.Delete(t.Context(), s.entryKey(writer("late")))
			noError(t, err)
			noError(t, queue(t, s, writer("other")))
		}, writer("late")},
		{"a permit beside the last but one", takes(permit("one")), takes(permit("two")), permit("late")},
		{"a first permit beside a writer", nothing, takes(writer("writer")), permit("late")},
		{"a first reader beside a permit", nothing, takes(permit("one")), reader("late")},
		{"a first permit beside a reader", nothing, takes(reader("one")), permit("late")},
		{"a writer beside a reader", nothing, takes(reader("one")), writer("late")},
		// Its own command that was sent again: what came first must not be put under another lease.
		{"a reader that has it already", takes(reader("one")), takes(reader("late")), reader("late")},
		{"a permit that has it already", nothing, takes(permit("late")), permit("late")},
	} {
		s := open(t, addr, WithPrefix(fmt.Sprint(i, "/")))
		c.before(s)
		now, err := s.read(t.Context(), c.late)
		noError(t, err)
		if _, free, err := s.judge(t.Context(), c.late, now); !free {
			t.Fatalf("%s: not free: %v", c.what, err)
		}
		c.meanwhile(s)
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
