package etcdlock

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

const maxBatch = 128 // requests in one transaction, by etcd's default

// Renew implements driver.Driver. It checks all locks in one read. Then it prolongs the leases of
// those locks that their claims still own.
func (s *store) Renew(ctx context.Context, claims []driver.Claim) []error {
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

func (s *store) renew(ctx context.Context, claims []driver.Claim) []error {
	owned, err := s.owned(ctx, claims)
	if err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	errs := make([]error, len(claims))
	var wg sync.WaitGroup
	for i, c := range claims {
		switch {
		case !owned[i].owns(c):
			errs[i] = driver.ErrNotOwner
		case c.TTL > 0:
			wg.Go(func() { errs[i] = s.extend(ctx, c, owned[i]) })
		}
	}
	wg.Wait()
	return errs
}

// owned returns what stands at each claim's name: the lock and, if there may be several holders, the claim's own key.
func (s *store) owned(ctx context.Context, claims []driver.Claim) ([]state, error) {
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
func (s *store) extend(ctx context.Context, c driver.Claim, now state) error {
	if now.changes(c) {
		_, err := s.change(ctx, c, now)
		return err
	}
	if now.mine != nil {
		return s.keep(ctx, now.lock.Lease, now.mine.key.Lease)
	}
	return s.keep(ctx, now.lock.Lease)
}

// keep prolongs leases in their order: the lock of several holders lasts as long as each of them.
func (s *store) keep(ctx context.Context, leases ...int64) error {
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
