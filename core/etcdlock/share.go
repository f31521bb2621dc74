package etcdlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
)

const (
	// maxFlights is how many transactions are under way before others begin to share one.
	maxFlights = 4
	// stuck is how long a transaction counts as one under way at most.
	stuck = 250 * time.Millisecond
	// sharedFor is how long a shared transaction may take. Its callers leave earlier.
	sharedFor = 10 * time.Second
)

// share puts transactions of many goroutines into few requests. A caller that finds fewer than maxFlights under way
// sends its own at once, by itself. Others gather until one of them ends, and go together, each as a nested transaction
// with its own conditions.
//
// etcd judges the conditions of all of them before it executes any, and they all have one revision. So what is
// written about a name goes with nothing else about that name: it goes by itself, if something else waits.
//
// A shared transaction belongs to no caller: it ends when the ctx of all of them have ended. If etcd refuses it, it has executed nothing, and
// each goes by itself. One that takes long does not count as one under way any more.
type share struct {
	mu      sync.Mutex // protects the fields below
	flights int        // those that count
	waiting []*part
}

// part is one transaction that may be shared.
type part struct {
	ctx             context.Context
	name            string
	when            []clientv3.Cmp
	then, otherwise []clientv3.Op

	answer *clientv3.TxnResponse
	err    error
	done   chan struct{} // closed when the above two are set, or when it is to go by itself
}

var errLeft = errors.New("etcdlock: the caller left while its transaction was under way")

// txn executes a transaction about one name. Without conditions it only reads.
func (s *Store) txn(ctx context.Context, name string, when []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return nil, err
	}
	p := &part{ctx: ctx, name: name, when: when, then: then, otherwise: otherwise, done: make(chan struct{})}
	if s.share.departs(p) {
		defer s.depart()()
		return s.alone(p)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return nil, s.share.abandon(p)
	}
	if p.answer == nil && p.err == nil {
		return s.alone(p)
	}
	return p.answer, p.err
}

func (s *Store) alone(p *part) (*clientv3.TxnResponse, error) {
	return s.client.Txn(p.ctx).If(p.when...).Then(p.then...).Else(p.otherwise...).Commit()
}

// departs says whether p goes at once, by itself. Otherwise it waits.
func (q *share) departs(p *part) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.flights < maxFlights && len(q.waiting) == 0 || slices.ContainsFunc(q.waiting, p.conflicts) {
		q.flights++
		return true
	}
	q.waiting = append(q.waiting, p)
	return false
}

// conflicts says whether p and o cannot go together.
func (p *part) conflicts(o *part) bool { return p.name == o.name && len(p.when)+len(o.when) > 0 }

// abandon ends p for its caller, which cannot wait any more, and says whether it was sent.
func (q *share) abandon(p *part) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, p); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		return driver.NotSent(p.ctx.Err())
	}
	return errors.Join(errLeft, p.ctx.Err())
}

// depart begins a flight that counts. What it returns ends it, and has the next one go.
func (s *Store) depart() (land func()) {
	next := func() {
		if parts := s.share.land(); parts != nil {
			go s.together(parts) // only its callers wait for that goroutine
		}
	}
	late := time.AfterFunc(stuck, next)
	return func() {
		if late.Stop() {
			next()
		}
	}
}

// land ends a flight, and returns what goes next, which counts as one.
func (q *share) land() []*part {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flights--
	n := min(len(q.waiting), maxBatch)
	if n == 0 {
		return nil
	}
	q.flights++
	parts := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return parts
}

// together executes several transactions in one.
func (s *Store) together(parts []*part) {
	defer s.depart()()
	ctx, cancel := context.WithTimeout(context.Background(), sharedFor)
	defer cancel()
	var callers atomic.Int64
	callers.Store(int64(len(parts)))
	ops := make([]clientv3.Op, len(parts))
	for i, p := range parts {
		ops[i] = clientv3.OpTxn(p.when, p.then, p.otherwise)
		defer context.AfterFunc(p.ctx, func() {
			if callers.Add(-1) == 0 {
				cancel() // nobody is left who could use what it gets
			}
		})()
	}
	answer, err := s.client.Txn(ctx).Then(ops...).Commit()
	for i, p := range parts {
		switch {
		case err == nil:
			r := answer.Responses[i].GetResponseTxn()
			p.answer = (*clientv3.TxnResponse)(&pb.TxnResponse{Header: answer.Header, Succeeded: r.Succeeded, Responses: r.Responses})
		case !refused(err):
			p.err = err
		}
		close(p.done)
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
