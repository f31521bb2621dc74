package etcdlock

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/oldadapter"
	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Between a look and the claim that follows from it everything may happen.
func TestAClaimThatCameTooLateTakesNothing(t *testing.T) {
	t.Parallel()
	addr := servers.Etcd(t).Addr()
	for what, meanwhile := range map[string]func(s *store, c, other driver.Claim) error{
		"another took it": func(s *store, _, other driver.Claim) error {
			_, err := s.Acquire(t.Context(), other)
			return err
		},
		"another stands in line": func(s *store, _, other driver.Claim) error {
			return s.Wait(t.Context(), other)
		},
		"the marker was left": func(s *store, c, other driver.Claim) error {
			if _, err := s.Acquire(t.Context(), other); err != nil {
				return err
			}
			other.Scope, other.Dedup, other.Mark = c.Scope, c.Dedup, true
			return s.Release(t.Context(), other)
		},
		"its place was lost": func(s *store, c, other driver.Claim) error {
			if _, err := s.client.Delete(t.Context(), s.placeKey(c.Name, c.At())); err != nil {
				return err
			}
			return s.Wait(t.Context(), other)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := open(t, addr, WithPrefix(what))
			c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute, Scope: "scope", Dedup: time.Hour}
			if what == "its place was lost" {
				c.Place = "place"
				noError(t, s.Wait(t.Context(), c))
			}
			now, err := s.look(t.Context(), c)
			noError(t, err)
			if _, free, err := s.judge(t.Context(), c, now); !free {
				t.Fatalf("not free: %v", err)
			}
			noError(t, meanwhile(s, c, driver.Claim{Name: "name", Token: "other", TTL: time.Minute}))
			answer, err := s.claim(t.Context(), c, now, leases{})
			noError(t, err)
			if answer.Succeeded {
				t.Error("granted")
			}
		})
	}
}

func TestACompletionThatCameTooLateFreesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute, Dedup: time.Hour, Mark: true}
	_, err := s.Acquire(t.Context(), c)
	noError(t, err)
	now, err := s.look(t.Context(), c)
	noError(t, err)
	_, err = s.client.Revoke(t.Context(), clientv3.LeaseID(now.lock.Lease))
	noError(t, err)
	other := driver.Claim{Name: "name", Token: "other", TTL: time.Minute}
	_, err = s.Acquire(t.Context(), other)
	noError(t, err)
	if err := s.end(t.Context(), c, now); !errors.Is(err, driver.ErrNotOwner) {
		t.Errorf("completion: %v", err)
	}
	noError(t, s.Renew(t.Context(), []driver.Claim{other})[0])
	if now, err = s.look(t.Context(), c); err != nil || now.done != nil {
		t.Errorf("a marker, or %v", err)
	}
}

// twice is what the client does when the connection breaks before the reply.
type twice struct{ clientv3.Lease }

func (l twice) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	if _, err := l.Lease.Revoke(ctx, id); err != nil {
		return nil, err
	}
	return l.Lease.Revoke(ctx, id)
}

func TestAReleaseThatTheClientSendsTwiceIsNoLoss(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	s.client.Lease = twice{s.client.Lease}
	locks, err := core.New(oldadapter.New(s))
	noError(t, err)
	noError(t, locks.Do(t.Context(), "name", func(context.Context) error { return nil }))
	x, err := locks.TryAcquire(t.Context(), "name")
	noError(t, err)
	noError(t, x.Release(t.Context()))
}

func TestRefusedClaimsLeaveNoLease(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	for range 5 {
		var wg sync.WaitGroup
		for range 8 { // they all find it free
			wg.Go(func() {
				c := driver.Claim{Name: "name", Token: rand.Text(), TTL: time.Minute}
				if _, err := s.Acquire(t.Context(), c); err == nil {
					time.Sleep(50 * time.Millisecond)
					noError(t, s.Release(t.Context(), c))
				}
			})
		}
		wg.Wait()
	}
	answer, err := s.client.Leases(t.Context())
	noError(t, err)
	if len(answer.Leases) != 0 {
		t.Errorf("%d leases", len(answer.Leases))
	}
}

func TestAPlaceLastsWhileItIsHeardOfAndNoLonger(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	owner := driver.Claim{Name: "name", Token: "owner", TTL: time.Minute}
	_, err := s.Acquire(t.Context(), owner)
	noError(t, err)
	stands := func(c driver.Claim) bool {
		now, err := s.look(t.Context(), c)
		noError(t, err)
		return now.own != nil
	}
	line := func(place string) driver.Claim {
		c := driver.Claim{Name: "name", Token: "waiter " + place, Place: place, TTL: time.Minute}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_ = s.Wait(ctx, c)
		if !stands(c) {
			t.Fatal("it does not stand in line")
		}
		return c
	}
	gone := line("a")
	noError(t, s.Release(t.Context(), owner))
	_, err = s.Acquire(t.Context(), gone)
	noError(t, err)
	if stands(gone) {
		t.Error("a grant does not leave the line")
	}
	left := line("b")
	if err := s.Release(t.Context(), left); !errors.Is(err, driver.ErrNotOwner) || stands(left) {
		t.Errorf("release: %v; in line: %t", err, stands(left))
	}
	heard, silent := line("c"), line("d")
	for stands(silent) {
		if _, err := s.Acquire(t.Context(), heard); err == nil {
			t.Fatal("granted")
		}
		time.Sleep(200 * time.Millisecond)
	}
	if !stands(heard) {
		t.Error("it has lost its place")
	}
}

func TestAWaiterWatchesOnlyTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	owner := driver.Claim{Name: "name", Token: "owner", TTL: time.Minute}
	_, err := s.Acquire(t.Context(), owner)
	noError(t, err)
	var line []driver.Claim
	watches := func(i int, want string) {
		t.Helper()
		if key, _, err := s.lineUp(t.Context(), line[i]); key != want || err != nil {
			t.Errorf("number %d watches %q, not %q; %v", i, key, want, err)
		}
	}
	want := s.lockKey("name")
	for i, place := range []string{"a", "b", "c"} {
		line = append(line, driver.Claim{Name: "name", Token: "waiter", Place: place, TTL: time.Minute})
		watches(i, want)
		want = s.placeKey("name", place)
	}
	leaves := line[1]
	leaves.Token = "not the owner's"
	if err := s.Release(t.Context(), leaves); !errors.Is(err, driver.ErrNotOwner) {
		t.Errorf("release: %v", err)
	}
	watches(2, s.placeKey("name", "a"))
	noError(t, s.Release(t.Context(), owner))
	watches(0, "")
	watches(2, s.placeKey("name", "a"))
}

func TestAWaiterKeepsItsPlace(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	_, err := s.Acquire(t.Context(), driver.Claim{Name: "name", Token: "owner", TTL: time.Minute})
	noError(t, err)
	c := driver.Claim{Name: "name", Token: "waiter", Place: "place", TTL: time.Minute}
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() { _ = s.Wait(ctx, c) })
	defer waiting.Wait()
	defer cancel()
	place := func() (since int64) {
		for since == 0 {
			now, err := s.look(t.Context(), c)
			noError(t, err)
			if now.own != nil {
				since = now.own.CreateRevision
			}
		}
		return since
	}
	since := place()
	time.Sleep(2 * driver.PlaceLife(c.TTL))
	if place() != since {
		t.Error("it stands somewhere else")
	}
}

// A lease can end between a look and its renewal.
func TestALeaseThatEndsDuringItsRenewalIsLost(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute}
	_, err := s.Acquire(t.Context(), c)
	noError(t, err)
	now, err := s.look(t.Context(), c)
	noError(t, err)
	_, err = s.client.Revoke(t.Context(), clientv3.LeaseID(now.lock.Lease))
	noError(t, err)
	if err := s.extend(t.Context(), c, now); !errors.Is(err, driver.ErrNotOwner) {
		t.Errorf("renewal: %v", err)
	}
	if _, free, err := s.judge(t.Context(), c, now); free || err == nil {
		t.Error("granted again")
	}
}

func open(t *testing.T, addr string, opts ...Option) *store {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop(), DialTimeout: time.Minute})
	noError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return newStore(client, opts...)
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
