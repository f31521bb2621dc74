package etcdlock

import (
	"context"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// state is what stands at a name, at one revision. What does not stand is nil.
//
// It is read, and then changed by a transaction if it is still as it was read. All that may have changed
// meanwhile without that being noticed is that holders or places have gone.
type state struct {
	revision int64
	lock     *mvccpb.KeyValue
	is       record           // what the lock says
	own      *mvccpb.KeyValue // the claim's place in line
	first    *mvccpb.KeyValue // the first place in line
	holders  []holder         // if the lock has several
	mine     *holder          // that of the claim
	stale    *mvccpb.KeyValue // the claim's key of a time when other software had not taken the name yet
	done     *mvccpb.KeyValue // the dedup marker, if the claim asks for it
}

// holder is one of several.
type holder struct {
	record

	key   *mvccpb.KeyValue
	limit int
}

// look asks for the state that a claim meets, of a majority.
func (s *store) look(ctx context.Context, c driver.Claim) (state, error) {
	answer, err := s.txn(ctx, c.Name, nil, s.parts(c), nil)
	if err != nil {
		return state{}, err
	}
	return s.stateOf(c, answer), nil
}

// parts are the requests for what stateOf reads.
func (s *store) parts(c driver.Claim) []clientv3.Op {
	parts := []clientv3.Op{
		clientv3.OpGet(s.lockKey(c.Name)),
		clientv3.OpGet(s.placeKey(c.Name, c.At())),
		clientv3.OpGet(s.linePrefix(c.Name), clientv3.WithFirstCreate()...),
		clientv3.OpGet(s.heldPrefix(c.Name), clientv3.WithPrefix()),
	}
	if c.Dedup > 0 {
		parts = append(parts, clientv3.OpGet(s.doneKey(c)))
	}
	return parts
}

func (s *store) stateOf(c driver.Claim, answer *clientv3.TxnResponse) state {
	n := state{revision: answer.Header.Revision, own: single(answer, 1), first: single(answer, 2)}
	n.locked(single(answer, 0), answer.Responses[3].GetResponseRange().GetKvs())
	for i, h := range n.holders {
		if string(h.key.Key) == s.heldKey(c) {
			n.mine = &n.holders[i]
		}
	}
	for _, kv := range answer.Responses[3].GetResponseRange().GetKvs() {
		if n.mine == nil && string(kv.Key) == s.heldKey(c) {
			n.stale = kv
		}
	}
	if c.Dedup > 0 {
		n.done = single(answer, 4)
	}
	return n
}

// locked adds a lock and, of those who may hold it together, the ones that do. A holder comes with the lock or
// after it; one that came before held the name at an earlier time.
func (n *state) locked(lock *mvccpb.KeyValue, held []*mvccpb.KeyValue) {
	if n.lock = lock; lock == nil {
		return
	}
	n.is = read(lock.Value)
	for _, kv := range held {
		if n.is.several() && kv.CreateRevision >= lock.CreateRevision {
			r := read(kv.Value)
			limit, _ := strconv.Atoi(r.form)
			n.holders = append(n.holders, holder{r, kv, limit})
		}
	}
}

// single is the key that the transaction's i-th request found, or nil.
func single(answer *clientv3.TxnResponse, i int) *mvccpb.KeyValue {
	kvs := answer.Responses[i].GetResponseRange().GetKvs()
	if len(kvs) == 0 {
		return nil
	}
	return kvs[0]
}

// owned says whether c's token has the name.
func (n *state) owned(c driver.Claim) bool { return n.mine != nil || n.alone(c) }

// alone says whether c's token has the name alone.
func (n *state) alone(c driver.Claim) bool { return n.is.form == owned && n.is.id == digest(c.Token) }

// owns says whether c's token has the name as c wants it.
func (n *state) owns(c driver.Claim) bool { return n.owned(c) && n.is.form == formOf(c) }

// fence is that of all holders, if the lock has several.
func (n *state) fence() uint64 {
	return uint64(n.lock.CreateRevision) //nolint:gosec // G115: revisions count up from 1
}

// heads says whether nobody stands in line before the claim.
func (n *state) heads() bool {
	return n.first == nil || n.own != nil && n.first.CreateRevision == n.own.CreateRevision
}

// isFor says whether the name was left for c's hand-off.
func (n *state) isFor(c driver.Claim) bool {
	return n.is.form == handoff && c.Handoff != "" && c.Exclusive() && n.is.id == digest(c.Handoff)
}

// deserted says whether the lock is one of several holders that have all gone. Those that died leave it.
func (n *state) deserted() bool { return n.is.several() && len(n.holders) == 0 }

// admits says whether nobody has the name, or those who have it leave room for c.
func (n *state) admits(c driver.Claim) bool {
	switch {
	case n.lock == nil || n.deserted():
		return true
	case n.is.form != formOf(c):
		return false
	default:
		return c.Shared || !c.Exclusive() && len(n.holders) < n.allows(c)
	}
}

// allows is how many holders there may be, if c is one of them.
func (n *state) allows(c driver.Claim) int {
	limit := c.Limit
	for _, h := range n.holders {
		limit = min(limit, h.limit)
	}
	return limit
}

// fewer is what c is told of the limit: 0 if it is its own.
func (n *state) fewer(c driver.Claim) int {
	if !c.Shared && !c.Exclusive() && n.allows(c) < c.Limit {
		return n.allows(c)
	}
	return 0
}

// frees is when there may be room beside several holders, or none of them any more, unless they are renewed.
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
