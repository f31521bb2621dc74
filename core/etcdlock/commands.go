package etcdlock

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Acquire implements driver.Driver.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return g, err
	}
	now, err := s.look(ctx, c) // a refusal then costs no write
	if err != nil {
		return g, err
	}
	if g, free, err := s.judge(ctx, c, now); !free {
		return g, err
	}
	lease, err := s.client.Grant(ctx, seconds(c.TTL))
	if err != nil {
		return g, err
	}
	answer, err := s.claim(ctx, c, now, lease.ID)
	if err != nil {
		return g, err // what it may have taken goes with its lease
	}
	if answer.Succeeded {
		return driver.Grant{Fence: uint64(answer.Header.Revision)}, nil //nolint:gosec // G115: revisions count up from 1
	}
	s.drop(ctx, lease.ID)
	g, free, err := s.judge(ctx, c, stateOf(answer))
	if free { // it has come and gone, or our place has
		err = &driver.Held{}
	}
	return g, err
}

// judge answers a claim, unless the name is free for it.
func (s *Store) judge(ctx context.Context, c driver.Claim, now state) (g driver.Grant, free bool, err error) {
	switch {
	case now.done != nil:
		return g, false, &driver.Duplicate{Label: string(now.done.Value)}
	case now.owned(c):
		if err := s.prolong(ctx, clientv3.LeaseID(now.lock.Lease)); err != nil {
			return g, false, err
		}
		if now.own != nil { // it stands behind what an earlier command got
			if err := s.leave(ctx, now.own); err != nil {
				return g, false, err
			}
		}
		return driver.Grant{Fence: uint64(now.lock.CreateRevision)}, false, nil //nolint:gosec // G115: as above
	case now.lock == nil && now.heads():
		return g, true, nil
	}
	if now.own != nil {
		_ = s.prolong(ctx, clientv3.LeaseID(now.own.Lease)) // Wait finds out, and stands in line again
	}
	held := driver.Held{}
	if now.lock != nil {
		_, held = owner(now.lock.Value)
	}
	return g, false, &held
}

// claim takes the name, if it is still free for c, which had nobody before it in line. Those
// who came later are behind it, but must be nobody if c has no place there.
func (s *Store) claim(ctx context.Context, c driver.Claim, now state, lease clientv3.LeaseID) (*clientv3.TxnResponse, error) {
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(s.lockKey(c.Name)), "=", 0)}
	steps := []clientv3.Op{clientv3.OpPut(s.lockKey(c.Name), record(c), clientv3.WithLease(lease))}
	if now.own == nil {
		line := clientv3.CreateRevision(s.linePrefix(c.Name)).WithPrefix()
		conditions = append(conditions, clientv3.Compare(line, "=", 0)) // that of a key that is not there
	} else {
		place := string(now.own.Key)
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(place), "=", now.own.CreateRevision))
		steps = append(steps, clientv3.OpDelete(place))
	}
	if c.Dedup > 0 {
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(s.doneKey(c)), "=", 0))
	}
	return s.client.Txn(ctx).If(conditions...).Then(steps...).Else(s.parts(c)...).Commit()
}

// prolong gives a lease its full time again.
func (s *Store) prolong(ctx context.Context, lease clientv3.LeaseID) error {
	_, err := s.client.KeepAliveOnce(ctx, lease)
	return err
}

// drop ends a lease that nobody needs. If that fails it ends by itself.
func (s *Store) drop(ctx context.Context, lease clientv3.LeaseID) {
	_, _ = s.client.Revoke(ctx, lease)
}

// Release implements driver.Driver.
//
// Each tenure and each place in the queue has a separate etcd lease. Revoking that deletes what it
// keeps and nothing else. So it does not matter what happens between the check and the revocation.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return err
	}
	now, err := s.look(ctx, c)
	if err != nil {
		return err
	}
	switch {
	case !now.owned(c):
		err = driver.ErrNotOwner
	case c.Mark:
		err = s.complete(ctx, c, now)
	default:
		// That the lease is not there proves nothing: the client sends this again by itself when
		// the connection breaks. So it is an unknown outcome.
		_, err = s.client.Revoke(ctx, clientv3.LeaseID(now.lock.Lease))
	}
	if c.Place != "" && now.own != nil {
		if left := s.leave(ctx, now.own); left != nil {
			return left
		}
	}
	return err
}

// leave takes a place out of the line.
func (s *Store) leave(ctx context.Context, place *mvccpb.KeyValue) error {
	_, err := s.client.Revoke(ctx, clientv3.LeaseID(place.Lease))
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil
	}
	return err
}

// complete leaves the marker in the step that frees the name.
func (s *Store) complete(ctx context.Context, c driver.Claim, now state) error {
	marker, err := s.client.Grant(ctx, seconds(c.Dedup))
	if err != nil {
		return err
	}
	lock := s.lockKey(c.Name)
	answer, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(lock), "=", now.lock.CreateRevision)).
		Then(clientv3.OpPut(s.doneKey(c), c.Label, clientv3.WithLease(marker.ID)), clientv3.OpDelete(lock)).
		Commit()
	if err != nil {
		return err
	}
	if !answer.Succeeded {
		s.drop(ctx, marker.ID)
		return driver.ErrNotOwner
	}
	s.drop(ctx, clientv3.LeaseID(now.lock.Lease))
	return nil
}
