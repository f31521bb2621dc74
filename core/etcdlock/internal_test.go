package etcdlock

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// Between a look and the claim that follows from it everything may happen.
func TestAClaimThatCameTooLateTakesNothing(t *testing.T) {
	t.Parallel()
	addr := servers.Etcd(t).Addr()
	for what, meanwhile := range map[string]func(s *Store, c, other driver.Claim) error{
		"another took it": func(s *Store, _, other driver.Claim) error {
			_, err := s.Acquire(t.Context(), other)
			return err
		},
		"another stands in line": func(s *Store, _, other driver.Claim) error {
			return s.Wait(t.Context(), other)
		},
		"the marker was left": func(s *Store, c, other driver.Claim) error {
			if _, err := s.Acquire(t.Context(), other); err != nil {
				return err
			}
			other.Scope, other.Dedup, other.Done = c.Scope, c.Dedup, true
			return s.Release(t.Context(), other)
		},
		"its place was lost": func(s *Store, c, other driver.Claim) error {
			if _, err := s.client.Delete(t.Context(), s.placeKey(c.Name, c.At())); err != nil {
				return err
			}
			return s.Wait(t.Context(), other)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop(), DialTimeout: time.Minute})
			noError(t, err)
			t.Cleanup(func() { _ = client.Close() })
			s := New(client, WithPrefix(what))
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
			answer, err := s.claim(t.Context(), c, now, clientv3.NoLease)
			noError(t, err)
			if answer.Succeeded {
				t.Error("granted")
			}
		})
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
