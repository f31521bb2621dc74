package etcdlock

import (
	"context"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// doubts are the leases of transactions whose outcome is not known. Such a lease may keep what its transaction has
// written, or does it later, and the next command of the same token may find that. So only a release ends it.
type doubts struct {
	mu sync.Mutex // protects the field below
	m  map[string][]clientv3.LeaseID
}

// doubt notes the lease of a transaction for a token, or a place, that has failed, or drops it if that was not sent. Others
// may have joined the lock of a group by now: its lease is left to them.
func (s *store) doubt(ctx context.Context, token string, ttl time.Duration, err error, made leases) {
	switch {
	case err == nil:
	case errors.Is(err, driver.ErrNotSent):
		s.drop(ctx, made.own, made.group)
	default:
		s.doubts.add(token, ttl, made.own)
	}
}

// add notes a lease until its TTL is over: it has ended then, unless it keeps something.
func (d *doubts) add(token string, ttl time.Duration, lease clientv3.LeaseID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.m == nil {
		d.m = make(map[string][]clientv3.LeaseID)
	}
	if d.m[token] == nil {
		time.AfterFunc(ttl, func() { d.take(token) })
	}
	d.m[token] = append(d.m[token], lease)
}

// take returns the leases that are noted for a token, and forgets them.
func (d *doubts) take(token string) []clientv3.LeaseID {
	d.mu.Lock()
	defer d.mu.Unlock()
	leases := d.m[token]
	delete(d.m, token)
	return leases
}
