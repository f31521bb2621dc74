package etcdlock

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
)

// state is what stands at a name, at one revision. What does not stand is nil.
type state struct {
	revision int64
	lock     *mvccpb.KeyValue
	own      *mvccpb.KeyValue // the claim's place in line
	first    *mvccpb.KeyValue // the first place in line
	done     *mvccpb.KeyValue // the dedup marker, if the claim asks for it
}

// look asks for the state that a claim meets, of a majority.
func (s *Store) look(ctx context.Context, c driver.Claim) (state, error) {
	answer, err := s.client.Txn(ctx).Then(s.parts(c)...).Commit()
	if err != nil {
		return state{}, err
	}
	return stateOf(answer), nil
}

// parts are the requests for what stateOf reads.
func (s *Store) parts(c driver.Claim) []clientv3.Op {
	parts := []clientv3.Op{
		clientv3.OpGet(s.lockKey(c.Name)),
		clientv3.OpGet(s.placeKey(c.Name, c.At())),
		clientv3.OpGet(s.linePrefix(c.Name), clientv3.WithFirstCreate()...),
	}
	if c.Dedup > 0 {
		parts = append(parts, clientv3.OpGet(s.doneKey(c)))
	}
	return parts
}

func stateOf(answer *clientv3.TxnResponse) state {
	part := func(i int) *mvccpb.KeyValue {
		if i >= len(answer.Responses) {
			return nil
		}
		return single(answer, i)
	}
	return state{answer.Header.Revision, part(0), part(1), part(2), part(3)}
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
func (n *state) owned(c driver.Claim) bool {
	if n.lock == nil {
		return false
	}
	token, _ := owner(n.lock.Value)
	return token == digest(c.Token)
}

// heads says whether nobody stands in line before the claim.
func (n *state) heads() bool {
	return n.first == nil || n.own != nil && n.first.CreateRevision == n.own.CreateRevision
}
