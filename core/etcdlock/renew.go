package etcdlock

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
)

const maxBatch = 128 // requests in one transaction, by etcd's default

// Renew implements driver.Driver. It checks all locks in one read. Then it prolongs the leases of
// those locks that their claims still own.
func (s *Store) Renew(ctx context.Context, claims []driver.Claim) []error {
	size := maxBatch
	if slices.ContainsFunc(claims, func(c driver.Claim) bool { return !c.Exclusive() }) {
		size /= 2 // for each of which two keys are read
	}
	errs := make([]error, 0, len(claims))
	for batch := range slices.Chunk(claims, size) {
		errs = append(errs, s.renew(ctx, batch)...)
	}
	return errs
}

func (s *Store) renew(ctx context.Context, claims []driver.Claim) []error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	var gets []clientv3.Op
	for _, c := range claims {
		gets = append(gets, clientv3.OpGet(s.lockKey(c.Name)))
		if !c.Exclusive() {
			gets = append(gets, clientv3.OpGet(s.ownKey(c)))
		}
	}
	answer, err := s.client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	errs, found := make([]error, len(claims)), answer.Responses
	var wg sync.WaitGroup
	for i, c := range claims {
		var now state
		if c.Exclusive() {
			now.locked(c, single(found[0]), nil)
			found = found[1:]
		} else {
			now.locked(c, single(found[0]), found[1].GetResponseRange().GetKvs())
			found = found[2:]
		}
		switch {
		case !now.owns(c):
			errs[i] = driver.ErrNotOwner
		case c.TTL > 0:
			wg.Go(func() { errs[i] = s.extend(ctx, c, now) })
		}
	}
	wg.Wait()
	return errs
}

// extend gives c, which owns the name, its full time again.
func (s *Store) extend(ctx context.Context, c driver.Claim, now state) error {
	if now.mine.ttl != c.TTL {
		_, err := s.change(ctx, c, now)
		return err
	}
	err := s.prolong(ctx, now.mine.key.Lease)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return driver.ErrNotOwner
	}
	return err
}

var errChanged = errors.New("etcdlock: the lock has changed meanwhile")

// change gives c, which owns the name, the TTL and the label that it asks for now. A lease keeps the TTL that it was
// made with: so the key goes to another lease. That is one more revision, which it returns: a fence that is not smaller.
func (s *Store) change(ctx context.Context, c driver.Claim, now state) (revision int64, err error) {
	lease, err := s.lease(ctx, c.TTL)
	if err != nil {
		return 0, err
	}
	own := string(now.mine.key.Key)
	conditions := []clientv3.Cmp{unchanged(s.lockKey(c.Name), now.lock), unchanged(own, now.mine.key)}
	steps := []clientv3.Op{clientv3.OpPut(own, holderOf(c).String(), clientv3.WithLease(lease))}
	answer, err := s.txn(ctx, c.Name, conditions, steps, nil)
	switch {
	case err != nil: // what it may have taken is there, and goes with its lease
		s.doubt(ctx, c, err, lease, clientv3.LeaseID(now.mine.key.Lease))
		return 0, err
	case !answer.Succeeded:
		s.drop(ctx, lease)
		return 0, errChanged
	}
	s.drop(ctx, clientv3.LeaseID(now.mine.key.Lease)) // it keeps nothing any more
	return answer.Header.Revision, nil
}
