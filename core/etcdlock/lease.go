package etcdlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
)

// lease makes a lease that lasts for d at least. One that comes after ctx has ended is ended, too: nobody knows it.
func (s *Store) lease(ctx context.Context, d time.Duration) (clientv3.LeaseID, error) {
	var made *clientv3.LeaseGrantResponse
	came := make(chan error)                   // not buffered: either the caller gets the lease, or it is ended
	go s.longer(func(longer context.Context) { //nolint:contextcheck // it may last longer than ctx
		var err error
		made, err = s.client.Grant(longer, int64((d+time.Second-1)/time.Second))
		select {
		case came <- err:
		case <-ctx.Done():
			if err == nil {
				_, _ = s.client.Revoke(longer, made.ID)
			}
		}
	})
	select {
	case err := <-came:
		if err != nil {
			return clientv3.NoLease, err
		}
		return made.ID, nil
	case <-ctx.Done():
		return clientv3.NoLease, ctx.Err()
	}
}

// drop ends leases that nobody needs, even if ctx has ended. If that fails they end by themselves.
func (s *Store) drop(ctx context.Context, leases ...clientv3.LeaseID) {
	leases = slices.DeleteFunc(leases, func(l clientv3.LeaseID) bool { return l == clientv3.NoLease })
	if len(leases) == 0 {
		return
	}
	over := make(chan struct{})
	go s.longer(func(longer context.Context) { //nolint:contextcheck // it may last longer than ctx
		defer close(over)
		for _, lease := range leases {
			_, _ = s.client.Revoke(longer, lease)
		}
	})
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// longest is how long a command may take that belongs to no caller.
const longest = 10 * time.Second

// longer calls f with a context of its own, which has nothing of a caller's.
func (s *Store) longer(f func(context.Context)) {
	ctx, cancel := context.WithTimeout(s.client.Ctx(), longest)
	defer cancel()
	f(ctx)
}

// leave deletes a key, by its lease, if there is one.
func (s *Store) leave(ctx context.Context, key *mvccpb.KeyValue) error {
	if key == nil {
		return nil
	}
	_, err := s.client.Revoke(ctx, clientv3.LeaseID(key.Lease))
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil
	}
	return err
}

// doubts are the leases of transactions whose outcome is not known. Such a lease may keep what its transaction has
// written, or does it later, and the next command of the same token may find that. So only a release ends it.
type doubts struct {
	mu sync.Mutex // protects the field below
	m  map[string][]clientv3.LeaseID
}

// doubt notes the lease of a transaction of c that has failed, or drops it if that was not sent. A lease is noted until its
// TTL is over: it has ended then, unless it keeps something. before are those that the transaction may have taken a key from.
func (s *Store) doubt(ctx context.Context, c driver.Claim, err error, lease clientv3.LeaseID, before ...clientv3.LeaseID) {
	if errors.Is(err, driver.ErrNotSent) {
		s.drop(ctx, lease)
		return
	}
	s.doubts.note(c.Token, c.TTL, append(before, lease)...)
}

// note keeps leases in mind for a while.
func (d *doubts) note(of string, ttl time.Duration, leases ...clientv3.LeaseID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.m == nil {
		d.m = make(map[string][]clientv3.LeaseID)
	}
	if d.m[of] == nil {
		time.AfterFunc(ttl, func() { d.take(of) })
	}
	d.m[of] = append(d.m[of], leases...)
}

// releaseOf stands for c's releases that left something, as far as is known. If a later one does, they did not, and never will.
func releaseOf(c driver.Claim) string { return "release of " + c.Token }

// take returns the leases that are noted for a token or a release, and forgets them.
func (d *doubts) take(of string) []clientv3.LeaseID {
	d.mu.Lock()
	defer d.mu.Unlock()
	leases := d.m[of]
	delete(d.m, of)
	return leases
}
