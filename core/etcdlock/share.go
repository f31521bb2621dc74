package etcdlock

import (
	"context"
	"errors"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/internal/share"
)

// transaction is one about a name. Several share a request, each as a nested transaction with its own conditions.
type transaction struct {
	name            string
	when            []clientv3.Cmp
	then, otherwise []clientv3.Op
}

type (
	sharing = share.Share[transaction, *clientv3.TxnResponse]
	part    = share.Part[transaction, *clientv3.TxnResponse]
)

// apart says whether two transactions cannot go together. etcd judges the conditions of all of them before it executes any, and
// they all have one revision. So what is written about a name goes with nothing else about that name.
func apart(a, b transaction) bool { return a.name == b.name && len(a.when)+len(b.when) > 0 }

// txn executes a transaction about one name. Without conditions it only reads.
func (s *Store) txn(ctx context.Context, name string, when []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	return s.share.Do(ctx, transaction{name, when, then, otherwise})
}

// alone executes one transaction.
func (s *Store) alone(ctx context.Context, t transaction) (*clientv3.TxnResponse, error) {
	return s.client.Txn(ctx).If(t.when...).Then(t.then...).Else(t.otherwise...).Commit()
}

// together executes several transactions in one. If etcd refuses that, it has executed nothing, and each goes by itself.
func (s *Store) together(ctx context.Context, parts []*part) {
	ops := make([]clientv3.Op, len(parts))
	for i, p := range parts {
		ops[i] = clientv3.OpTxn(p.Command.when, p.Command.then, p.Command.otherwise)
	}
	answer, err := s.client.Txn(ctx).Then(ops...).Commit()
	for i, p := range parts {
		switch {
		case err == nil:
			r := answer.Responses[i].GetResponseTxn()
			p.Said, p.Answer = true, (*clientv3.TxnResponse)(&pb.TxnResponse{Header: answer.Header, Succeeded: r.Succeeded, Responses: r.Responses})
		case !refused(err):
			p.Err = err
		}
	}
}

// refusals are what etcd says of a request of which it has executed nothing, perhaps because of a part of it.
var refusals = []error{
	rpctypes.ErrLeaseNotFound, rpctypes.ErrPermissionDenied, rpctypes.ErrDuplicateKey, rpctypes.ErrTooManyOps,
	rpctypes.ErrRequestTooLarge,
}

func refused(err error) bool {
	return slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
}
