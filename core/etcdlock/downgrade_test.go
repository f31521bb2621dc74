package etcdlock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// downgraded is the claim of a token that was granted the name alone.
func downgraded(t *testing.T, s *Store, token string) driver.Claim {
	t.Helper()
	c := driver.Claim{Name: "name", Token: token, TTL: time.Minute}
	c.Fence = take(t, s, c).Fence
	c.Shared, c.Downgraded = true, true
	return c
}

// meanwhile does something once, after a release has looked, and before it goes on.
type meanwhile struct {
	clientv3.KV
	clientv3.Lease

	looked bool
	once   sync.Once
	do     func()
}

func (m *meanwhile) Txn(ctx context.Context) clientv3.Txn {
	if m.looked {
		m.once.Do(m.do)
	}
	m.looked = true
	return m.KV.Txn(ctx)
}

func (m *meanwhile) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	m.once.Do(m.do)
	return m.Lease.Revoke(ctx, id)
}

func TestAReleaseFreesWhatBecomesAReaderMeanwhile(t *testing.T) {
	t.Parallel()
	addr := servers.Etcd(t).Addr()
	for what, mark := range map[string]bool{"released": false, "completed": true} {
		s, other := open(t, addr), open(t, addr)
		c := downgraded(t, other, what)
		did := false
		m := &meanwhile{KV: s.client.KV, Lease: s.client.Lease, do: func() {
			did = true
			noError(t, other.Renew(t.Context(), []driver.Claim{c})[0])
			take(t, other, reader("reader"))
		}}
		s.client.KV, s.client.Lease = m, m
		end := c
		end.Mark, end.Dedup = mark, time.Hour
		noError(t, s.Release(t.Context(), end))
		if !did {
			t.Errorf("%s: nothing came in between", what)
		}
		noError(t, other.Renew(t.Context(), []driver.Claim{reader("reader")})[0])
		noError(t, other.Release(t.Context(), reader("reader")))
		writer := driver.Claim{Name: "name", Token: "writer", TTL: time.Minute}
		take(t, other, writer)
		noError(t, other.Release(t.Context(), writer))
	}
}

// Its lock, with its fence, outlasts it.
func TestAReaderAfterADeadOneThatWasAWriterHasALargerFence(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	c := downgraded(t, s, "dead")
	noError(t, s.Renew(t.Context(), []driver.Claim{c})[0])
	if g := take(t, s, reader("beside")); g.Fence != c.Fence {
		t.Errorf("fence %d beside %d", g.Fence, c.Fence)
	}
	noError(t, s.Release(t.Context(), reader("beside")))
	now, err := s.look(t.Context(), c)
	noError(t, err)
	noError(t, s.leave(t.Context(), now.mine.key)) // as at the end of its time
	if g := take(t, s, reader("next")); g.Fence <= c.Fence {
		t.Errorf("fence %d after %d", g.Fence, c.Fence)
	}
	noError(t, s.Release(t.Context(), reader("next")))
	stands(t, s, 0, "left")
}

// Its first command was executed, and nobody heard of it: the second one has looked before.
func TestADowngradeThatIsSentTwiceIsOne(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	c := downgraded(t, s, "token")
	now, err := s.look(t.Context(), c)
	noError(t, err)
	for range 2 {
		noError(t, s.downgrade(t.Context(), c, now))
	}
	stands(t, s, 2, "sent twice")
	noError(t, s.Release(t.Context(), c))
	stands(t, s, 0, "left")
}

func TestWhatOtherSoftwareHasTakenMeanwhileBecomesNoReader(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	c := downgraded(t, s, "token")
	now, err := s.look(t.Context(), c)
	noError(t, err)
	_, err = s.client.Put(t.Context(), s.lockKey(c.Name), "foreign")
	noError(t, err)
	if err := s.downgrade(t.Context(), c, now); !errors.Is(err, driver.ErrNotOwner) {
		t.Error(err)
	}
	if now, err = s.look(t.Context(), c); err != nil || string(now.lock.Value) != "foreign" {
		t.Errorf("%v, %v", now.lock, err)
	}
}

// patient watches until something is heard, and not only until it is time to look again.
type patient struct{ clientv3.Watcher }

func (p patient) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	return p.Watcher.Watch(context.WithoutCancel(ctx), key, opts...)
}

func TestTheFirstInTheQueueIsToldOfADowngrade(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	s.client.Watcher = patient{s.client.Watcher}
	c := downgraded(t, s, "token")
	waits := reader("waits")
	now, err := s.look(t.Context(), waits)
	noError(t, err)
	told := make(chan struct{})
	go func() {
		defer close(told)
		s.listen(t.Context(), s.lockKey(c.Name), now.revision, waits)
	}()
	noError(t, s.Renew(t.Context(), []driver.Claim{c})[0])
	backendtest.Eventually(t, "it is told", func() bool {
		select {
		case <-told:
			return true
		default:
			return false
		}
	})
}
