package etcdlock

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// keepAlives prolong leases over one stream for the whole Store. With users and passwords, the client authenticates
// for each stream, and a server does 10 to 20 of that in a second: [clientv3.Client.KeepAliveOnce], which opens a stream
// for each lease, loses leases from about 50 on. [clientv3.Client.KeepAlive] would share a stream, but
// renews by itself, whatever becomes of the lock.
//
// The stream is opened when it is needed, and stays open until Close, or until it breaks. It belongs to no caller: who
// leaves does not end it. But a caller that leaves after the stream has not answered for [silent] ends it, so that the
// next one goes perhaps to another member; those who still wait ask again over that.
type keepAlives struct {
	mu  sync.Mutex // protects the field below
	now *stream    // if there is one
}

// stream is one LeaseKeepAlive stream. The cause of its context's end is what callers get then.
type stream struct {
	ctx   context.Context
	end   context.CancelCauseFunc
	asks  chan prolongation
	ended chan struct{} // closed when its goroutines have ended

	mu      sync.Mutex             // protects the fields below
	pending map[int64][]chan error // of requests that were sent: those for a lease are answered in their order
	since   time.Time              // when an answer was last heard, or first waited for; zero if none is waited for
	watches *watches               // nil if there are none
}

// watches share another stream, which the client has for all contexts with the same metadata.
type watches struct {
	ctx   context.Context    //nolint:containedctx // has that, and never ends before the client
	leave context.CancelFunc // ends what keeps their stream
	began time.Time
}

// prolongation is a request to give a lease its full time again. It stays with its stream if its caller leaves, so
// that nobody takes its answer for that to a later request.
type prolongation struct {
	lease int64
	told  chan error // of size one
}

// silent is longer than an authentication takes at a busy server.
const silent = 2 * time.Second

// Why a stream was ended. The first is one of those errors after which callers ask again.
var (
	errSilent = status.Error(codes.Unavailable, "etcdlock: nobody answers the stream that prolongs leases")
	errClosed = errors.New("etcdlock: the stream that prolongs leases was closed")
)

// prolong gives a lease its full time again. Only an answer to a request that it has sent itself counts. If the stream
// breaks, it asks again over another.
func (s *Store) prolong(ctx context.Context, lease int64) error {
	for {
		err := s.keepAlives.stream(s.client).prolong(ctx, lease)
		if code := status.Code(err); code != codes.Unavailable && code != codes.Internal {
			return clientv3.ContextError(ctx, err)
		}
		if pause(ctx); ctx.Err() != nil {
			return clientv3.ContextError(ctx, err)
		}
	}
}

// stream is the one that there is, or a new one.
func (k *keepAlives) stream(client *clientv3.Client) *stream {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now == nil || k.now.ctx.Err() != nil {
		k.now = &stream{asks: make(chan prolongation), ended: make(chan struct{}), pending: make(map[int64][]chan error), since: time.Now()}
		k.now.ctx, k.now.end = context.WithCancelCause(clientv3.WithRequireLeader(client.Ctx()))
		go k.now.run(client)
	}
	return k.now
}

// watching returns what a watch shares with the others. It has the client keep their stream for as long as this one lasts: with its
// last watch the client would end it, and authenticate again for the next one. Nobody writes the key.
func (st *stream) watching(client *clientv3.Client, key string) *watches {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.watches == nil {
		now := time.Now()
		join := func(ctx context.Context) context.Context {
			return metadata.AppendToOutgoingContext(ctx, "holdfast-since", strconv.FormatInt(now.UnixNano(), 10))
		}
		keeps, leave := context.WithCancel(join(st.ctx))
		st.watches = &watches{join(clientv3.WithRequireLeader(client.Ctx())), leave, now}
		go client.Watch(keeps, key) // which waits until that has begun
	}
	return st.watches
}

// fresh is how long the token of a stream of watches is not the reason if one is refused.
const fresh = time.Minute

// refused has later watches begin another stream than that of which one was refused, unless it is fresh: it has the token with which
// it began, and servers forget tokens, by default those that were not used for 5 minutes.
func (st *stream) refused(w *watches) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.watches == w && time.Since(w.began) > fresh {
		st.watches = nil
		w.leave()
	}
}

func (st *stream) prolong(ctx context.Context, lease int64) error {
	p := prolongation{lease, make(chan error, 1)}
	select {
	case st.asks <- p:
	case <-st.ctx.Done():
	case <-ctx.Done():
	}
	select {
	case err := <-p.told:
		return err
	case <-st.ctx.Done():
		return context.Cause(st.ctx) //nolint:contextcheck // why the stream has ended
	case <-ctx.Done():
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.since.IsZero() && time.Since(st.since) > silent {
		st.end(errSilent)
	}
	return ctx.Err()
}

// run sends what callers ask for until the stream breaks.
func (st *stream) run(client *clientv3.Client) {
	defer close(st.ended)
	rpc, err := pb.NewLeaseClient(client.ActiveConnection()).LeaseKeepAlive(st.ctx)
	if err != nil {
		st.end(err)
		return
	}
	st.mu.Lock()
	st.since = time.Time{}
	st.mu.Unlock()
	var receiving sync.WaitGroup
	defer receiving.Wait()
	receiving.Go(func() { st.receive(rpc) })
	for {
		select {
		case p := <-st.asks:
			st.sends(p)
			if rpc.Send(&pb.LeaseKeepAliveRequest{ID: p.lease}) != nil {
				return // the receiver is told why
			}
		case <-st.ctx.Done():
			return
		}
	}
}

// sends notes a request. It counts as sent, whatever becomes of that.
func (st *stream) sends(p prolongation) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.since.IsZero() {
		st.since = time.Now()
	}
	st.pending[p.lease] = append(st.pending[p.lease], p.told)
}

// receive hands out answers until there is an error.
func (st *stream) receive(rpc pb.Lease_LeaseKeepAliveClient) {
	for {
		answer, err := rpc.Recv()
		if err != nil {
			st.end(err)
			return
		}
		st.answer(answer)
	}
}

func (st *stream) answer(answer *pb.LeaseKeepAliveResponse) {
	st.mu.Lock()
	defer st.mu.Unlock()
	of := st.pending[answer.ID]
	if len(of) == 0 { // that nobody asked for
		return
	}
	if st.pending[answer.ID] = of[1:]; len(of) == 1 {
		delete(st.pending, answer.ID)
	}
	st.since = time.Now()
	if len(st.pending) == 0 {
		st.since = time.Time{}
	}
	if answer.TTL <= 0 {
		of[0] <- rpctypes.ErrLeaseNotFound
	} else {
		of[0] <- nil
	}
}

// Close implements driver.Closer: it ends the stream that prolongs leases, and with it what keeps that of watches.
func (s *Store) Close(ctx context.Context) error {
	k := &s.keepAlives
	k.mu.Lock()
	st := k.now
	k.mu.Unlock()
	if st == nil {
		return nil
	}
	st.end(errClosed)
	select {
	case <-st.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
