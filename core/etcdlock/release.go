package etcdlock

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Release implements driver.Driver.
//
// Each grant and each entry in the queue has a separate etcd lease. Revoking that deletes what it
// keeps and nothing else. So it does not matter what happens between the check and the revocation, and a
// release that is sent again, late, never ends a later grant.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	now, err := s.read(ctx, c)
	if err != nil {
		return err
	}
	err = s.end(ctx, c, now)
	if err == nil || errors.Is(err, driver.ErrNotOwner) {
		s.drop(ctx, s.doubts.take(c.Token)...)
	}
	left := s.leave(ctx, now.own)
	if now.mine != nil && !now.owns(c) { // other software has the name
		left = errors.Join(left, s.leave(ctx, now.mine.key))
	}
	if left != nil {
		return left
	}
	return err
}

// end ends what c's token owns.
func (s *Store) end(ctx context.Context, c driver.Claim, now state) error {
	switch {
	case !now.owns(c):
		return driver.ErrNotOwner
	case c.Dedup > 0 || c.Keep > 0:
		return s.free(ctx, c, now.mine.key)
	default:
		// That the lease is not there proves nothing: the client sends this again by itself when
		// the connection breaks. So it is an unknown outcome.
		_, err := s.client.Revoke(ctx, clientv3.LeaseID(now.mine.key.Lease))
		return err
	}
}

// free deletes the key of a holder, if it is as it was read, and leaves what c asks for in the same step.
func (s *Store) free(ctx context.Context, c driver.Claim, own *mvccpb.KeyValue) error {
	steps := []clientv3.Op{clientv3.OpDelete(string(own.Key))}
	var made []clientv3.LeaseID
	put := func(key, value string, d time.Duration) error {
		lease, err := s.lease(ctx, d)
		made = append(made, lease)
		steps = append(steps, clientv3.OpPut(key, value, clientv3.WithLease(lease)))
		return err
	}
	var err error
	if c.Keep > 0 && c.Exclusive() {
		steps = nil
		err = put(string(own.Key), leftBy(c).String(), c.Keep)
	}
	if err == nil && c.Dedup > 0 {
		err = put(s.doneKey(c), c.Label, c.Dedup)
	}
	if err != nil {
		s.drop(ctx, made...)
		return err
	}
	answer, err := s.txn(ctx, c.Name, []clientv3.Cmp{unchanged(string(own.Key), own)}, steps, nil)
	switch {
	case err != nil: // they may keep what it has left
		s.doubts.note(releaseOf(c), c.TTL, made...)
		s.doubts.note(c.Token, c.TTL, clientv3.LeaseID(own.Lease))
		return err
	case !answer.Succeeded:
		s.drop(ctx, made...)
		return driver.ErrNotOwner
	}
	s.drop(ctx, append(s.doubts.take(releaseOf(c)), clientv3.LeaseID(own.Lease))...)
	return nil
}
