package etcdlock

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
)

const (
	maxBatch = 128 // requests in one transaction, by etcd's default
	atOnce   = 16  // leases that are prolonged at the same time: each takes a stream
)

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
	owned, err := s.owned(ctx, claims)
	if err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	errs := make([]error, len(claims))
	var wg sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i, c := range claims {
		switch {
		case !owned[i].owns(c):
			errs[i] = driver.ErrNotOwner
		case c.TTL > 0:
			places <- struct{}{}
			wg.Go(func() {
				errs[i] = s.extend(ctx, c, owned[i])
				<-places
			})
		}
	}
	wg.Wait()
	return errs
}

// owned returns what stands at each claim's name: the lock and, if there may be several holders, the claim's own key.
func (s *Store) owned(ctx context.Context, claims []driver.Claim) ([]state, error) {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return nil, err
	}
	var gets []clientv3.Op
	for _, c := range claims {
		gets = append(gets, clientv3.OpGet(s.lockKey(c.Name)))
		if !c.Exclusive() {
			gets = append(gets, clientv3.OpGet(s.heldKey(c)))
		}
	}
	answer, err := s.client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return nil, err
	}
	states, at := make([]state, len(claims)), 0
	for i, c := range claims {
		now, lock := &states[i], single(answer, at)
		at++
		if c.Exclusive() {
			now.locked(lock, nil)
			continue
		}
		now.locked(lock, answer.Responses[at].GetResponseRange().GetKvs())
		at++
		if len(now.holders) > 0 {
			now.mine = &now.holders[0]
		}
	}
	return states, nil
}

// extend gives c, which owns the name, its full time again.
func (s *Store) extend(ctx context.Context, c driver.Claim, now state) error {
	switch {
	case now.mine != nil:
		return s.keep(ctx, now.lock.Lease, now.mine.key.Lease)
	case c.Downgraded:
		return s.downgrade(ctx, c, now)
	default:
		return s.keep(ctx, now.lock.Lease)
	}
}

// downgrade makes the only owner the first of several readers. Its lease then keeps the reader's key, and a new one
// the lock. The fence of the writer is that of all of them.
func (s *Store) downgrade(ctx context.Context, c driver.Claim, now state) error {
	if err := s.keep(ctx, now.lock.Lease); err != nil {
		return err
	}
	group, err := s.groupLease(ctx, c)
	if err != nil {
		return err
	}
	lock, own, is := s.lockKey(c.Name), s.heldKey(c), groupOf(c)
	is.label = strconv.FormatInt(now.lock.ModRevision, 10)
	answer, err := s.txn(ctx, c.Name, []clientv3.Cmp{unchanged(lock, now.lock), unchanged(own, nil)}, []clientv3.Op{
		clientv3.OpPut(lock, is.String(), clientv3.WithLease(group)),
		clientv3.OpPut(own, holderOf(c).String(), clientv3.WithLease(clientv3.LeaseID(now.lock.Lease))),
	}, s.parts(c))
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound): // that of the owner has ended
		err = driver.ErrNotOwner
	case err != nil || answer.Succeeded: // what it may have made goes with its lease
		return err
	default:
		if now = s.stateOf(c, answer); now.mine == nil {
			err = driver.ErrNotOwner
		} else { // an earlier command was executed late
			err = s.keep(ctx, now.lock.Lease, now.mine.key.Lease)
		}
	}
	s.drop(ctx, group)
	return err
}

// keep prolongs leases in their order: the lock of several holders lasts as long as each of them.
func (s *Store) keep(ctx context.Context, leases ...int64) error {
	for _, lease := range leases {
		err := s.prolong(ctx, lease)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return driver.ErrNotOwner
		}
		if err != nil {
			return err
		}
	}
	return nil
}
