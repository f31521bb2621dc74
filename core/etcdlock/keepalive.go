package etcdlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// keepAlives prolong leases over one stream for the whole Store. With users and passwords, the client authenticates
// for each stream, and a server does 10 to 20 of that in a second: [clientv3.Client.KeepAliveOnce], which opens a stream
// for each lease, loses leases from about 50 on. [clientv3.Client.KeepAlive] would share a stream, but
// renews by itself, whatever becomes of the lock.
//
// The stream is opened when it is needed, and stays open until CloseIdle, or until it breaks. It belongs to no
// caller: who leaves does not end it. But if a caller leaves after the stream has not answered for [silent], the next
// one opens another, perhaps to another member. The old one ends with its last caller.
type keepAlives struct {
	mu   sync.Mutex // protects the fields below
	now  *stream    // that new requests go to, if there is one
	open []*stream  // all whose goroutines run
}

// stream is one LeaseKeepAlive stream.
type stream struct {
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // of size one: there is something to send
	ended  chan struct{} // closed when its goroutines have ended

	// Protected by keepAlives.mu.
	unsent  []*prolongation
	pending map[int64][]*prolongation // sent: those of a lease are answered in their order
	callers int                       // that have not left
	heard   time.Time                 // when it last answered, or was last without a request
}

// prolongation is a request to give a lease its full time again. It stays with its stream if its caller leaves, so
// that nobody takes its answer for that to a later request.
type prolongation struct {
	lease int64
	done  chan struct{} // closed when err is set
	err   error
}

// silent is longer than an authentication takes at a busy server.
const silent = 2 * time.Second

// prolong gives a lease its full time again. Only an answer to a request that it has sent itself counts. If the stream
// breaks, it asks again over another.
func (s *store) prolong(ctx context.Context, lease int64) error {
	for {
		err := s.keepAlives.once(ctx, s.client, lease)
		if code := status.Code(err); code != codes.Unavailable && code != codes.Internal {
			return clientv3.ContextError(ctx, err)
		}
		if pause(ctx); ctx.Err() != nil {
			return clientv3.ContextError(ctx, err)
		}
	}
}

// once asks for lease over the stream, and awaits the answer.
func (k *keepAlives) once(ctx context.Context, client *clientv3.Client, lease int64) error {
	p := &prolongation{lease: lease, done: make(chan struct{})}
	st := k.enter(client, p)
	select {
	case <-p.done:
	case <-ctx.Done():
	}
	k.leave(st, p)
	select {
	case <-p.done:
		return p.err
	default:
		return ctx.Err()
	}
}

// enter adds p to the stream, and begins one if there is none.
func (k *keepAlives) enter(client *clientv3.Client, p *prolongation) *stream {
	k.mu.Lock()
	defer k.mu.Unlock()
	st := k.now
	if st == nil {
		st = &stream{wake: make(chan struct{}, 1), ended: make(chan struct{}), pending: make(map[int64][]*prolongation), heard: time.Now()}
		st.ctx, st.cancel = context.WithCancel(clientv3.WithRequireLeader(client.Ctx()))
		k.now, k.open = st, append(k.open, st)
		go k.run(client, st)
	}
	if len(st.unsent)+len(st.pending) == 0 {
		st.heard = time.Now()
	}
	st.unsent = append(st.unsent, p)
	st.callers++
	select {
	case st.wake <- struct{}{}:
	default:
	}
	return st
}

// leave ends the wait for p.
func (k *keepAlives) leave(st *stream, p *prolongation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	st.callers--
	select {
	case <-p.done:
	default:
		st.unsent = slices.DeleteFunc(st.unsent, func(o *prolongation) bool { return o == p })
		if k.now == st && time.Since(st.heard) > silent {
			k.now = nil
		}
	}
	if k.now != st && st.callers == 0 {
		st.cancel()
	}
}

// run sends and receives until the stream breaks. Then it fails what was not answered.
func (k *keepAlives) run(client *clientv3.Client, st *stream) {
	defer close(st.ended)
	err := k.exchange(client, st)
	st.cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now == st {
		k.now = nil
	}
	k.open = slices.DeleteFunc(k.open, func(o *stream) bool { return o == st })
	for _, of := range st.pending {
		st.unsent = append(st.unsent, of...)
	}
	for _, p := range st.unsent {
		p.end(err)
	}
}

func (p *prolongation) end(err error) {
	p.err = err
	close(p.done)
}

// errClosed is what callers get whose stream CloseIdle ends, or their client's end.
var errClosed = errors.New("etcdlock: the stream that prolongs leases was closed")

func (k *keepAlives) exchange(client *clientv3.Client, st *stream) error {
	rpc, err := pb.NewLeaseClient(client.ActiveConnection()).LeaseKeepAlive(st.ctx)
	if err != nil {
		return st.why(err)
	}
	var receiving sync.WaitGroup
	defer receiving.Wait()
	broken := make(chan error, 1)
	receiving.Go(func() { broken <- k.receive(rpc, st) })
	defer st.cancel() // the receiver ends with it
	for {
		select {
		case <-st.wake:
		case err := <-broken:
			return st.why(err)
		}
		for lease, more := k.next(st); more; lease, more = k.next(st) {
			if rpc.Send(&pb.LeaseKeepAliveRequest{ID: lease}) != nil {
				return st.why(<-broken) // where gRPC says why
			}
		}
	}
}

func (st *stream) why(err error) error {
	if st.ctx.Err() != nil {
		return errClosed
	}
	return err
}

// next is what to send next. It counts as sent, whatever becomes of that.
func (k *keepAlives) next(st *stream) (lease int64, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(st.unsent) == 0 {
		return 0, false
	}
	p := st.unsent[0]
	st.unsent = st.unsent[1:]
	st.pending[p.lease] = append(st.pending[p.lease], p)
	return p.lease, true
}

// receive hands out answers until there is an error.
func (k *keepAlives) receive(rpc pb.Lease_LeaseKeepAliveClient, st *stream) error {
	for {
		answer, err := rpc.Recv()
		if err != nil {
			return err
		}
		k.answer(st, answer)
	}
}

func (k *keepAlives) answer(st *stream, answer *pb.LeaseKeepAliveResponse) {
	k.mu.Lock()
	defer k.mu.Unlock()
	st.heard = time.Now()
	of := st.pending[answer.ID]
	if len(of) == 0 { // that nobody asked for
		return
	}
	if st.pending[answer.ID] = of[1:]; len(of) == 1 {
		delete(st.pending, answer.ID)
	}
	var err error
	if answer.TTL <= 0 {
		err = rpctypes.ErrLeaseNotFound
	}
	of[0].end(err)
}

// CloseIdle implements driver.IdleCloser: it ends the stream that prolongs leases, and the watches of places.
func (s *store) CloseIdle(ctx context.Context) error {
	s.watches.endAll()
	k := &s.keepAlives
	k.mu.Lock()
	open := slices.Clone(k.open)
	k.now = nil
	k.mu.Unlock()
	for _, st := range open {
		st.cancel()
	}
	for _, st := range open {
		select {
		case <-st.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
