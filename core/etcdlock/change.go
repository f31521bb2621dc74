package etcdlock

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// changes says whether c, which owns the name, asks for another TTL than it has.
func (n state) changes(c driver.Claim) bool {
	if n.mine != nil {
		return n.mine.ttl != c.TTL
	}
	return n.is.ttl != c.TTL
}

var errChanged = errors.New("etcdlock: the lock has changed meanwhile")

// change gives c, which owns the name, the TTL and the label that it asks for now. A lease keeps the TTL that it was
// made with: so the key goes to another lease. The lock of several holders goes along if theirs would be too short. That is one
// more revision, which it returns: a fence that is not smaller.
func (s *store) change(ctx context.Context, c driver.Claim, now state) (revision int64, err error) {
	var made leases
	if made.own, err = s.lease(ctx, c.TTL); err != nil {
		return 0, err
	}
	lock := s.lockKey(c.Name)
	conditions := []clientv3.Cmp{unchanged(lock, now.lock)}
	was := []clientv3.LeaseID{clientv3.LeaseID(now.lock.Lease)}
	var steps []clientv3.Op
	if now.mine == nil {
		steps = append(steps, clientv3.OpPut(lock, ownerOf(c).String(), clientv3.WithLease(made.own)))
	} else {
		key := s.heldKey(c)
		conditions = append(conditions, unchanged(key, now.mine.key))
		steps = append(steps, clientv3.OpPut(key, holderOf(c).String(), clientv3.WithLease(made.own)))
		was[0] = clientv3.LeaseID(now.mine.key.Lease)
		if now.is.ttl < c.TTL {
			if made.group, err = s.groupLease(ctx, c); err != nil {
				return 0, err
			}
			steps = append(steps, clientv3.OpPut(lock, groupOf(c).String(), clientv3.WithLease(made.group)))
			was = append(was, clientv3.LeaseID(now.lock.Lease))
		} else if err := s.keep(ctx, now.lock.Lease); err != nil {
			return 0, err
		}
	}
	answer, err := s.txn(ctx, c.Name, conditions, steps, s.parts(c))
	s.doubt(ctx, c.Token, c.TTL, err, made)
	switch {
	case err != nil:
		return 0, err // what it may have taken stands, and goes with its lease
	case !answer.Succeeded:
		s.drop(ctx, made.own, made.group)
		return 0, errChanged
	}
	s.drop(ctx, was...) // they keep nothing any more
	return answer.Header.Revision, nil
}
