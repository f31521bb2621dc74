package etcdlock

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Acquire implements driver.Driver.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	if err := s.reach(ctx); err != nil {
		return g, err
	}
	now, err := s.read(ctx, c) // a refusal then costs no write
	if err == nil {
		g, _, err = s.ask(ctx, c, now)
	}
	return g, explain(err)
}

// maxTries is how often a claim tries to take a free name. One that never succeeds among many is better off in the queue.
const maxTries = 4

// ask takes the name for c, unless somebody else has it or comes first. It also returns the state that c met last.
func (s *Store) ask(ctx context.Context, c driver.Claim, now state) (g driver.Grant, last state, err error) {
	lease := clientv3.NoLease
	for tries := 0; ; tries++ {
		g, free, err := s.judge(ctx, c, now)
		if free && tries == maxTries { // each time, somebody else has got on
			free, err = false, &driver.Held{}
		}
		if !free {
			// A proxy can send a transaction twice: what it took the first time is there.
			if now.mine == nil || lease != clientv3.LeaseID(now.mine.key.Lease) {
				s.drop(ctx, lease)
			}
			return g, now, err
		}
		if lease == clientv3.NoLease {
			if lease, err = s.lease(ctx, c.TTL); err != nil {
				return g, now, err
			}
		}
		answer, err := s.claim(ctx, c, now, lease)
		switch {
		case err != nil: // what it may have taken goes with its lease
			s.doubt(ctx, c, err, lease)
			return g, now, err
		case !answer.Succeeded:
			now = s.stateOf(c, answer)
		default:
			if now.lock != nil { // it was left for a hand-off
				s.drop(ctx, clientv3.LeaseID(now.lock.Lease))
			}
			return granted(c, now, answer.Header.Revision), now, nil
		}
	}
}

// judge answers a claim, unless the name is free for it.
func (s *Store) judge(ctx context.Context, c driver.Claim, now state) (g driver.Grant, free bool, err error) {
	switch {
	case now.done != nil:
		return g, false, &driver.Duplicate{Label: string(now.done.Value)}
	case now.owns(c):
		g, err = s.again(ctx, c, now)
		return g, false, err
	case now.isFor(c) || now.admits(c) && now.heads():
		return g, true, nil
	default:
		return g, false, s.held(ctx, c, now)
	}
}

// again gives an owner its full time again. It may be in the queue behind what an earlier command got.
func (s *Store) again(ctx context.Context, c driver.Claim, now state) (g driver.Grant, err error) {
	revision := now.mine.key.ModRevision
	if string(now.mine.key.Value) != holderOf(c).String() {
		revision, err = s.change(ctx, c, now)
	} else {
		err = s.prolong(ctx, now.mine.key.Lease)
	}
	if err == nil {
		err = s.leave(ctx, now.own)
	}
	if err != nil {
		return g, driver.UnknownOutcome(err)
	}
	return granted(c, now, revision), nil
}

// granted is the grant of a claim that met a state, and took the name at a revision.
func granted(c driver.Claim, now state, revision int64) (g driver.Grant) {
	g.Limit = now.fewer(c)
	if formOf(c) != limited {
		g.Fence = uint64(revision) //nolint:gosec // G115: revisions count up from 1
	}
	return g
}

// held says who has the name.
func (s *Store) held(ctx context.Context, c driver.Claim, now state) error {
	switch {
	case now.admits(c):
		return &driver.Held{}
	case !now.is.left():
		return &driver.Held{Label: now.is.label, Remaining: now.frees(c), Limit: now.fewer(c)}
	}
	left, _, err := s.left(ctx, now.lock)
	if err != nil {
		return err
	}
	left = max(time.Millisecond, min(left, now.is.ttl))
	return &driver.Held{Label: now.is.label, Remaining: left, Exact: now.is.form == kept}
}

// claim takes the name for c in one transaction, if all is as it was read. Those who came to the queue later are behind
// c, but must be nobody if c has no entry there. A hand-off goes before them all.
func (s *Store) claim(ctx context.Context, c driver.Claim, now state, lease clientv3.LeaseID) (*clientv3.TxnResponse, error) {
	conditions := []clientv3.Cmp{unchanged(s.lockKey(c.Name), now.lock)}
	switch formOf(c) {
	case owned:
		conditions = append(conditions, absent(s.heldPrefix(c.Name)))
	case shared:
		conditions = append(conditions, absent(s.formPrefix(c.Name, limited)))
	default:
		joined := clientv3.ModRevision(s.formPrefix(c.Name, limited)).WithPrefix()
		conditions = append(conditions, absent(s.formPrefix(c.Name, shared)), clientv3.Compare(joined, "<", now.revision+1))
	}
	if !c.Exclusive() {
		// Not if it is there: a transaction that comes late would put it under a lease that is nearly over.
		conditions = append(conditions, unchanged(s.ownKey(c), nil))
	}
	steps := []clientv3.Op{clientv3.OpPut(s.ownKey(c), holderOf(c).String(), clientv3.WithLease(lease))}
	if now.own != nil {
		conditions = append(conditions, unchanged(string(now.own.Key), now.own))
		steps = append(steps, clientv3.OpDelete(string(now.own.Key)))
	} else if !now.isFor(c) {
		conditions = append(conditions, absent(s.queuePrefix(c.Name)))
	}
	if c.Dedup > 0 {
		conditions = append(conditions, unchanged(s.doneKey(c), nil))
	}
	return s.txn(ctx, c.Name, conditions, steps, s.parts(c))
}

// absent is the condition that no key has a prefix.
func absent(prefix string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(prefix).WithPrefix(), "=", 0) // that of a key that is not there
}

// unchanged is the condition that a key is as it was read.
func unchanged(key string, seen *mvccpb.KeyValue) clientv3.Cmp {
	revision := int64(0)
	if seen != nil {
		revision = seen.ModRevision
	}
	return clientv3.Compare(clientv3.ModRevision(key), "=", revision)
}
