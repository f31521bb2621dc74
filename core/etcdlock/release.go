package etcdlock

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Release implements driver.Driver.
//
// Each tenure and each place in the queue has a separate etcd lease. Revoking that deletes what it
// keeps and nothing else. So it does not matter what happens between the check and the revocation, and a
// release that is sent again, late, never ends a later tenure.
func (s *store) Release(ctx context.Context, c driver.Claim) error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return err
	}
	if c.Place != "" {
		s.watches.end(s.placeKey(c.Name, c.Place))
	}
	now, err := s.look(ctx, c)
	if err != nil {
		return err
	}
	err = s.free(ctx, c, now)
	if err == nil || errors.Is(err, driver.ErrNotOwner) {
		s.drop(ctx, s.doubts.take(c.Token)...)
		s.drop(ctx, s.doubts.take(c.Place)...)
	}
	if c.Place != "" && now.own != nil {
		if left := s.leave(ctx, now.own); left != nil {
			return left
		}
	}
	return err
}

// free ends what c's token owns.
func (s *store) free(ctx context.Context, c driver.Claim, now state) error {
	switch {
	case !now.owns(c):
		return driver.ErrNotOwner
	case now.mine != nil:
		return s.part(ctx, c, now, *now.mine)
	case c.Mark || c.Keep > 0:
		return s.end(ctx, c, now)
	default:
		// That the lease is not there proves nothing: the client sends this again by itself when
		// the connection breaks. So it is an unknown outcome.
		_, err := s.client.Revoke(ctx, clientv3.LeaseID(now.lock.Lease))
		return err
	}
}

// leave deletes a place, by its lease.
func (s *store) leave(ctx context.Context, place *mvccpb.KeyValue) error {
	_, err := s.client.Revoke(ctx, clientv3.LeaseID(place.Lease))
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil
	}
	return err
}

// end frees the name of its only owner, or leaves it taken, and leaves the marker in the same step.
func (s *store) end(ctx context.Context, c driver.Claim, now state) error {
	steps, marker, err := s.mark(ctx, c)
	if err != nil {
		return err
	}
	lock, keeps := s.lockKey(c.Name), clientv3.NoLease
	if c.Keep > 0 {
		if keeps, err = s.lease(ctx, c.Keep); err != nil {
			return err
		}
		steps = append(steps, clientv3.OpPut(lock, leftBy(c).String(), clientv3.WithLease(keeps)))
	} else {
		steps = append(steps, clientv3.OpDelete(lock))
	}
	answer, err := s.txn(ctx, c.Name, []clientv3.Cmp{unchanged(lock, now.lock)}, steps, nil)
	if err != nil {
		return err
	}
	if !answer.Succeeded {
		s.drop(ctx, marker, keeps)
		return driver.ErrNotOwner
	}
	s.drop(ctx, clientv3.LeaseID(now.lock.Lease))
	return nil
}

// part ends one of several holders, and their lock with the last one of them.
func (s *store) part(ctx context.Context, c driver.Claim, now state, h holder) error {
	steps, marker, err := s.mark(ctx, c)
	if err != nil {
		return err
	}
	own, all := string(h.key.Key), s.heldPrefix(c.Name)
	older := func(from, end string) clientv3.Cmp { // those in that range are holders of an earlier lock
		return clientv3.Compare(clientv3.CreateRevision(from).WithRange(end), "<", now.lock.CreateRevision)
	}
	steps = append(steps, clientv3.OpDelete(own), clientv3.OpTxn(
		[]clientv3.Cmp{unchanged(s.lockKey(c.Name), now.lock), older(all, own), older(own+"\x00", clientv3.GetPrefixRangeEnd(all))},
		[]clientv3.Op{clientv3.OpDelete(s.lockKey(c.Name))}, nil,
	))
	answer, err := s.txn(ctx, c.Name, []clientv3.Cmp{unchanged(own, h.key)}, steps, nil)
	switch {
	case err != nil:
		return err
	case !answer.Succeeded:
		s.drop(ctx, marker)
		return driver.ErrNotOwner
	case answer.Responses[len(steps)-1].GetResponseTxn().GetSucceeded():
		s.drop(ctx, clientv3.LeaseID(now.lock.Lease), clientv3.LeaseID(h.key.Lease))
	default:
		s.drop(ctx, clientv3.LeaseID(h.key.Lease))
	}
	return nil
}

// mark returns the step that leaves the marker, if c wants one, and its lease.
func (s *store) mark(ctx context.Context, c driver.Claim) (steps []clientv3.Op, lease clientv3.LeaseID, err error) {
	if !c.Mark {
		return nil, clientv3.NoLease, nil
	}
	if lease, err = s.lease(ctx, c.Dedup); err != nil {
		return nil, lease, err
	}
	return []clientv3.Op{clientv3.OpPut(s.doneKey(c), c.Label, clientv3.WithLease(lease))}, lease, nil
}
