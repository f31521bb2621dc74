package etcdlock_test

import (
	"context"
	"path"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/etcdlock"
)

// A caller leaves as etcd has executed one of its requests: nothing that it has made stays until its TTL ends.
func TestWhoLeavesLeavesNoLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	foreign := func() {
		_, err := w.direct.Put(t.Context(), "holdfast/name", "somebody was faster")
		ok(t, err)
	}
	for what, c := range map[string]struct {
		method string
		unsaid bool   // the answer does not come: the context has ended
		before func() // the request
	}{
		"the lease is there":                   {method: "LeaseGrant"},
		"the lease is there, which is unsaid":  {method: "LeaseGrant", unsaid: true},
		"somebody else has taken it meanwhile": {method: "Txn", before: foreign},
		"that they have is unsaid":             {method: "Txn", before: foreign, unsaid: true},
	} {
		t.Run(what, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			var granted atomic.Bool
			store := etcdlock.New(intercepted(t, w.server.Addr(), func(ctx context.Context, method string, invoke func(context.Context) error) error {
				if method == "LeaseGrant" {
					granted.Store(true)
				}
				if method != c.method || !granted.Load() { // the first look is a Txn, too
					return invoke(ctx)
				}
				if c.before != nil {
					c.before()
				}
				err := invoke(context.WithoutCancel(ctx))
				leave()
				if c.unsaid && ctx.Err() != nil {
					return ctx.Err()
				}
				return err
			}))
			_, err := store.Acquire(ctx, driver.Claim{Name: "name", Token: "token", TTL: time.Hour})
			if err == nil || ctx.Err() == nil {
				t.Errorf("%v, %v", err, ctx.Err())
			}
			is(t, store.Release(t.Context(), driver.Claim{Name: "name", Token: "token", TTL: time.Hour}), driver.ErrNotOwner)
			eventually(t, "no lease is left", func() bool { return w.leases(t) == 0 })
			_, err = w.direct.Delete(t.Context(), "holdfast/name")
			ok(t, err)
		})
	}
}

// intercepted returns a client whose unary requests go through f.
func intercepted(t *testing.T, addr string, f func(ctx context.Context, method string, invoke func(context.Context) error) error) *clientv3.Client {
	t.Helper()
	return etcdlock.Dial(t, clientv3.Config{Endpoints: []string{addr}, DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return f(ctx, path.Base(method), func(ctx context.Context) error { return invoker(ctx, method, req, reply, cc, opts...) })
		},
	)}})
}
