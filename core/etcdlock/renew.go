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

const (
	maxBatch = 128 // requests in one transaction, by etcd's default
	atOnce   = 16  // leases that are prolonged at the same time: each takes a stream
)

// Renew implements driver.Driver. It checks all locks in one read. Then it prolongs the leases of
// those locks that their claims still own.
func (s *Store) Renew(ctx context.Context, claims []driver.Claim) []error {
	errs := make([]error, 0, len(claims))
	for batch := range slices.Chunk(claims, maxBatch) {
		errs = append(errs, s.renew(ctx, batch)...)
	}
	return errs
}

func (s *Store) renew(ctx context.Context, claims []driver.Claim) []error {
	locks, err := s.locks(ctx, claims)
	if err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	errs := make([]error, len(claims))
	var wg sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i, c := range claims {
		switch lock := locks[i]; {
		case !lock.owned(c):
			errs[i] = driver.ErrNotOwner
		case c.TTL > 0:
			places <- struct{}{}
			wg.Go(func() {
				errs[i] = s.keep(ctx, lock.lock.Lease)
				<-places
			})
		}
	}
	wg.Wait()
	return errs
}

// locks returns a state for each claim, with nothing but the lock.
func (s *Store) locks(ctx context.Context, claims []driver.Claim) ([]state, error) {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return nil, err
	}
	gets := make([]clientv3.Op, len(claims))
	for i, c := range claims {
		gets[i] = clientv3.OpGet(s.lockKey(c.Name))
	}
	answer, err := s.client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return nil, err
	}
	locks := make([]state, len(claims))
	for i := range claims {
		locks[i].lock = single(answer, i)
	}
	return locks, nil
}

func (s *Store) keep(ctx context.Context, lease int64) error {
	err := s.prolong(ctx, clientv3.LeaseID(lease))
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return driver.ErrNotOwner
	}
	return err
}
