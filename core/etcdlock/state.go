package etcdlock

import (
	"context"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
)

// state is what is at a name, at one revision. What is not there is nil.
//
// It is read, and then changed by a transaction if it is still as it was read. All that may have changed
// meanwhile without that being noticed is that holders or entries of the queue have gone.
type state struct {
	revision int64
	lock     *mvccpb.KeyValue
	is       record           // what the lock says, or the form of the name if there is none
	holders  []holder         // whose name it is; the key of an only owner is the lock
	mine     *holder          // the claim's key, which may be beside a lock of other software
	own      *mvccpb.KeyValue // the claim's entry in the queue
	first    *mvccpb.KeyValue // the first entry of the queue
	done     *mvccpb.KeyValue // the dedup marker, if the claim asks for it
}

// holder is the owner of a name, or one of several.
type holder struct {
	record

	key   *mvccpb.KeyValue
	limit int // 0 for a reader
}

// read asks for the state that a claim meets, of a majority.
func (s *Store) read(ctx context.Context, c driver.Claim) (state, error) {
	answer, err := s.txn(ctx, c.Name, nil, s.parts(c), nil)
	if err != nil {
		return state{}, err
	}
	return s.stateOf(c, answer), nil
}

// parts are the requests for what stateOf reads.
func (s *Store) parts(c driver.Claim) []clientv3.Op {
	parts := []clientv3.Op{
		clientv3.OpGet(s.lockKey(c.Name)),
		clientv3.OpGet(s.heldPrefix(c.Name), clientv3.WithPrefix()),
		clientv3.OpGet(s.entryKey(c)),
		clientv3.OpGet(s.queuePrefix(c.Name), clientv3.WithFirstCreate()...),
	}
	if c.Dedup > 0 {
		parts = append(parts, clientv3.OpGet(s.doneKey(c)))
	}
	return parts
}

// stateOf is what the parts at the end of a transaction have found.
func (s *Store) stateOf(c driver.Claim, answer *clientv3.TxnResponse) state {
	n, found := state{revision: answer.Header.Revision}, answer.Responses
	if c.Dedup > 0 {
		n.done = single(found[len(found)-1])
		found = found[:len(found)-1]
	}
	found = found[len(found)-4:]
	n.own, n.first = single(found[2]), single(found[3])
	n.locked(c, single(found[0]), found[1].GetResponseRange().GetKvs())
	return n
}

// locked adds a lock, or those who have the name together. They do not count beside a lock: other software has taken the name.
func (n *state) locked(c driver.Claim, lock *mvccpb.KeyValue, held []*mvccpb.KeyValue) {
	if n.lock = lock; lock != nil {
		n.is = read(lock.Value)
	}
	switch n.is.form {
	case owned:
		held = []*mvccpb.KeyValue{lock}
	case kept, handoff:
	default: // nobody's, or foreign
		n.is = record{}
	}
	all := make([]holder, len(held))
	for i, kv := range held {
		all[i] = holder{record: read(kv.Value), key: kv}
		all[i].limit, _ = strconv.Atoi(all[i].form)
		if all[i].id == digest(c.Token) {
			n.mine = &all[i]
		}
	}
	if lock == nil && len(all) > 0 {
		n.is.form = shared
		if all[0].limit > 0 {
			n.is.form = limited
		}
	}
	if lock == nil || n.is.form == owned {
		n.holders = all
	}
}

// single is the key that a request found, or nil.
func single(answer *pb.ResponseOp) *mvccpb.KeyValue {
	if kvs := answer.GetResponseRange().GetKvs(); len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}

// owns says whether c's token has the name as c wants it.
func (n *state) owns(c driver.Claim) bool { return n.mine != nil && n.is.form == formOf(c) }

// heads says whether nobody is in the queue before the claim.
func (n *state) heads() bool {
	return n.first == nil || n.own != nil && n.first.CreateRevision == n.own.CreateRevision
}

// isFor says whether the name was left for c's hand-off.
func (n *state) isFor(c driver.Claim) bool {
	return n.is.form == handoff && c.Handoff != "" && c.Exclusive() && n.is.id == digest(c.Handoff)
}

// admits says whether nobody has the name, or those who have it leave room for c.
func (n *state) admits(c driver.Claim) bool {
	switch {
	case n.lock != nil:
		return false
	case len(n.holders) == 0:
		return true
	case n.is.form != formOf(c):
		return false
	default:
		return c.Shared() || !c.Exclusive() && len(n.holders) < n.allows(c)
	}
}

// allows is how many holders of a limited name there may be, if c is one of them.
func (n *state) allows(c driver.Claim) int {
	limit := c.Limit
	for _, h := range n.holders {
		limit = min(limit, h.limit)
	}
	return limit
}

// fewer is what c is told of the limit: 0 if it is its own.
func (n *state) fewer(c driver.Claim) int {
	if n.is.form == limited && formOf(c) == limited && n.allows(c) < c.Limit {
		return n.allows(c)
	}
	return 0
}

// frees is when there may be room beside the holders, or none of them any more, unless they are renewed.
func (n *state) frees(c driver.Claim) (left time.Duration) {
	for i, h := range n.holders {
		if n.is.form == limited && formOf(c) == limited && i > 0 {
			left = min(left, h.ttl)
		} else {
			left = max(left, h.ttl)
		}
	}
	return left
}
