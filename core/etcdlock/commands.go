package etcdlock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Acquire implements driver.Driver.
func (s *store) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	if err := s.reach(ctx); err != nil {
		return g, err
	}
	defer func() { err = explain(err) }()
	var made leases
	now, err := s.look(ctx, c) // a refusal then costs no write
	for tries := 0; err == nil; tries++ {
		g, free, err := s.judge(ctx, c, now)
		if free && tries == maxTries { // each time, somebody else has got on
			free, err = false, &driver.Held{}
		}
		if !free {
			s.drop(ctx, made.unused(now)...)
			return g, err
		}
		answer, err := s.take(ctx, c, now, &made)
		switch {
		case err != nil:
			return g, err // what it may have taken goes with its lease
		case answer == nil:
			if now, err = s.look(ctx, c); err != nil {
				s.drop(ctx, made.own, made.group)
				return g, err
			}
		case !answer.Succeeded:
			now = s.stateOf(c, answer)
		default:
			if now.isFor(c) {
				s.drop(ctx, clientv3.LeaseID(now.lock.Lease))
			} else if now.lock != nil {
				s.drop(ctx, made.group) // for a lock that another one has made meanwhile
			}
			return granted(c, now, uint64(answer.Header.Revision)), nil //nolint:gosec // G115: as in judge
		}
	}
	return g, err
}

// maxTries is how often a claim tries to take a free name. One that never succeeds among many is better off in the queue.
const maxTries = 4

// judge answers a claim, unless the name is free for it.
func (s *store) judge(ctx context.Context, c driver.Claim, now state) (g driver.Grant, free bool, err error) {
	switch {
	case now.done != nil:
		return g, false, &driver.Duplicate{Label: string(now.done.Value)}
	case now.owns(c):
		revision := now.lock.ModRevision
		if err := s.again(ctx, now); err != nil {
			return g, false, err
		}
		if now.changes(c) || now.mine == nil && now.is.label != c.Label {
			if revision, err = s.change(ctx, c, now); err != nil {
				return g, false, err
			}
			now.is.ttl = max(now.is.ttl, c.TTL)
		}
		return granted(c, now, uint64(revision)), false, nil //nolint:gosec // G115: revisions count up from 1
	case now.isFor(c) || now.admits(c) && now.heads():
		return g, true, nil
	}
	if now.own != nil {
		_ = s.prolong(ctx, now.own.Lease) // Wait finds out, and stands in line again
	}
	return g, false, s.held(ctx, c, now)
}

// again gives an owner its full time again. It may stand in line behind what an earlier command got.
func (s *store) again(ctx context.Context, now state) error {
	err := s.prolong(ctx, now.lock.Lease)
	if err == nil && now.mine != nil {
		err = s.prolong(ctx, now.mine.key.Lease)
	}
	if err == nil && now.own != nil {
		err = s.leave(ctx, now.own)
	}
	return err
}

// granted is the grant of a claim that met a state, and took the name at a revision. Holders together have the fence
// of their lock.
func granted(c driver.Claim, now state, revision uint64) (g driver.Grant) {
	switch {
	case c.Exclusive():
	case now.lock == nil:
		g.Limit = now.fewer(c)
	default:
		revision, g.Limit = now.fence(), now.fewer(c)
		if now.is.ttl < c.TTL {
			g.TTL, g.Longest = now.is.ttl, now.is.ttl // the lock lasts no longer
		}
	}
	if formOf(c) != limited {
		g.Fence = revision
	}
	return g
}

// held says who has the name.
func (s *store) held(ctx context.Context, c driver.Claim, now state) error {
	switch {
	case now.lock == nil || now.admits(c):
		return &driver.Held{}
	case now.is.several():
		return &driver.Held{Remaining: now.frees(c), Limit: now.fewer(c)}
	case !now.is.left():
		return &driver.Held{Label: now.is.label, Remaining: now.is.ttl}
	}
	left, _, err := s.left(ctx, now.lock)
	if err != nil {
		return err
	}
	left = max(time.Millisecond, min(left, now.is.ttl))
	return &driver.Held{Label: now.is.label, Remaining: left, Exact: now.is.form == kept}
}

// leases were made for a claim.
type leases struct {
	own   clientv3.LeaseID
	group clientv3.LeaseID // of a lock with several holders
}

// unused are those that keep nothing. A proxy can send a transaction twice: what it took the first time stands then.
func (l leases) unused(now state) []clientv3.LeaseID {
	if now.lock != nil && l.own == clientv3.LeaseID(now.lock.Lease) {
		return nil
	}
	return []clientv3.LeaseID{l.own, l.group}
}

// take takes the name for c, if all stands as it stood. No answer means that something had to be done first.
func (s *store) take(ctx context.Context, c driver.Claim, now state, made *leases) (*clientv3.TxnResponse, error) {
	joins := now.lock != nil && now.is.form == formOf(c) && !c.Exclusive()
	if now.stale != nil || now.deserted() && !joins {
		return nil, s.clear(ctx, c, now)
	}
	if err := s.prepare(ctx, c, now, joins, made); errors.Is(err, rpctypes.ErrLeaseNotFound) { // the lock has gone
		return nil, nil //nolint:nilnil // documented
	} else if err != nil {
		s.drop(ctx, made.own, made.group)
		return nil, err
	}
	answer, err := s.claim(ctx, c, now, *made)
	s.doubt(ctx, c.Token, c.TTL, err, *made)
	return answer, err
}

// prepare makes the leases that c needs and has not got, or prolongs that of the lock that it joins.
func (s *store) prepare(ctx context.Context, c driver.Claim, now state, joins bool, made *leases) (err error) {
	var own error
	var other sync.WaitGroup
	if made.own == clientv3.NoLease {
		other.Go(func() { made.own, own = s.lease(ctx, c.TTL) })
	}
	switch {
	case joins:
		err = s.prolong(ctx, now.lock.Lease)
	case !c.Exclusive() && made.group == clientv3.NoLease:
		made.group, err = s.groupLease(ctx, c)
	}
	other.Wait()
	return errors.Join(own, err)
}

// claim is the transaction of take. Those who came to the line later are behind c, but must be nobody if c has no
// place there. A hand-off goes before them all.
func (s *store) claim(ctx context.Context, c driver.Claim, now state, made leases) (*clientv3.TxnResponse, error) {
	conditions := []clientv3.Cmp{unchanged(s.lockKey(c.Name), now.lock)}
	var steps []clientv3.Op
	switch {
	case c.Exclusive():
		steps = append(steps, clientv3.OpPut(s.lockKey(c.Name), ownerOf(c).String(), clientv3.WithLease(made.own)))
	case now.lock == nil:
		steps = append(steps, clientv3.OpPut(s.lockKey(c.Name), groupOf(c).String(), clientv3.WithLease(made.group)))
		fallthrough
	default:
		// Not if it is there: a transaction that comes late would put it under a lease that is nearly over.
		conditions = append(conditions, unchanged(s.heldKey(c), nil))
		steps = append(steps, clientv3.OpPut(s.heldKey(c), holderOf(c).String(), clientv3.WithLease(made.own)))
	}
	if formOf(c) == limited {
		conditions = append(conditions, s.nobodyJoined(c.Name, now))
	}
	if now.own != nil {
		conditions = append(conditions, unchanged(string(now.own.Key), now.own))
		steps = append(steps, clientv3.OpDelete(string(now.own.Key)))
	} else if !now.isFor(c) {
		line := clientv3.CreateRevision(s.linePrefix(c.Name)).WithPrefix()
		conditions = append(conditions, clientv3.Compare(line, "=", 0)) // that of a key that is not there
	}
	if c.Dedup > 0 {
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(s.doneKey(c)), "=", 0))
	}
	return s.txn(ctx, c.Name, conditions, steps, s.parts(c))
}

// unchanged is the condition that a key stands as it was read.
func unchanged(key string, seen *mvccpb.KeyValue) clientv3.Cmp {
	revision := int64(0)
	if seen != nil {
		revision = seen.ModRevision
	}
	return clientv3.Compare(clientv3.ModRevision(key), "=", revision)
}

// nobodyJoined is the condition that no holder has come since the state was read.
func (s *store) nobodyJoined(name string, now state) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(s.heldPrefix(name)).WithPrefix(), "<", now.revision+1)
}

// clear deletes what dead holders have left: a lock of another kind than c's, or c's own key of an earlier time.
func (s *store) clear(ctx context.Context, c driver.Claim, now state) error {
	if now.stale != nil {
		return s.leave(ctx, now.stale)
	}
	same := []clientv3.Cmp{unchanged(s.lockKey(c.Name), now.lock), s.nobodyJoined(c.Name, now)}
	answer, err := s.txn(ctx, c.Name, same, []clientv3.Op{clientv3.OpDelete(s.lockKey(c.Name))}, nil)
	if err == nil && answer.Succeeded {
		s.drop(ctx, clientv3.LeaseID(now.lock.Lease))
	}
	return err
}

// lease makes a lease that lasts for d at least. One that comes after ctx has ended is ended, too: nobody knows it.
func (s *store) lease(ctx context.Context, d time.Duration) (clientv3.LeaseID, error) {
	var lease clientv3.LeaseID
	var err error
	var settled atomic.Bool // by the answer, or by the end of ctx
	s.outlast(ctx, func(ctx context.Context) {
		var made *clientv3.LeaseGrantResponse
		if made, err = s.client.Grant(ctx, seconds(d)); err == nil {
			lease = made.ID
		}
		if !settled.CompareAndSwap(false, true) {
			s.drop(ctx, lease)
		}
	})
	if settled.CompareAndSwap(false, true) {
		return clientv3.NoLease, ctx.Err()
	}
	return lease, err
}

// groupLease makes the lease of a lock with several holders, of whom c is the first.
func (s *store) groupLease(ctx context.Context, c driver.Claim) (clientv3.LeaseID, error) {
	return s.lease(ctx, groupOf(c).ttl+time.Second) // no holder's lease lasts longer
}

// drop ends leases that nobody needs, even if ctx has ended. If that fails they end by themselves.
func (s *store) drop(ctx context.Context, leases ...clientv3.LeaseID) {
	var ends sync.WaitGroup
	for _, lease := range leases {
		if lease != clientv3.NoLease {
			ends.Go(func() {
				s.outlast(ctx, func(ctx context.Context) { _, _ = s.client.Revoke(ctx, lease) })
			})
		}
	}
	ends.Wait()
}

// outlast calls f, and returns when that has or when ctx has ended. f's context lasts longer, and has nothing of ctx,
// which its owner may use again.
func (s *store) outlast(ctx context.Context, f func(context.Context)) {
	over := make(chan struct{})
	go func() { //nolint:contextcheck // as it says
		defer close(over)
		longer, cancel := context.WithTimeout(s.client.Ctx(), sharedFor)
		defer cancel()
		f(longer)
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
}
