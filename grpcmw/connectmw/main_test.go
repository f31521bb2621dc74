package connectmw_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	request = testpb.RefundRequest
	reply   = testpb.Reply
)

const (
	refund    = "/shop.v1.Orders/Refund"
	imports   = "/shop.v1.Orders/Import"
	watch     = "/shop.v1.Orders/Watch"
	negotiate = "/shop.v1.Orders/Negotiate"
)

// order is a request for an order; 0 is one that names none.
func order(id int64) *connect.Request[request] {
	return connect.NewRequest(&request{Order: &testpb.Order{Id: id}})
}

// leaseName answers with the name of the lease, "none" if there is none.
func leaseName(ctx context.Context, _ *connect.Request[request]) (*connect.Response[reply], error) {
	return connect.NewResponse(&reply{Text: name(ctx)}), nil
}

func name(ctx context.Context) string {
	if x, ok := core.FromContext(ctx); ok {
		return x.Name()
	}
	return "none"
}

// protocols are what clients of a Connect service may speak.
var protocols = map[string][]connect.ClientOption{
	"Connect": nil, "gRPC": {connect.WithGRPC()}, "gRPCWeb": {connect.WithGRPCWeb()},
}

// serve serves a handler over HTTP/2, which all kinds of streams need.
func serve(t *testing.T, procedure string, h http.Handler) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(procedure, h)
	srv := httptest.NewUnstartedServer(mux)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

func client(srv *httptest.Server, procedure string, opts ...connect.ClientOption) *connect.Client[request, reply] {
	return connect.NewClient[request, reply](srv.Client(), srv.URL+procedure, opts...)
}

// lockers returns two Lockers of one store: the server's, and that of another process.
func lockers(t *testing.T) (locks, other *core.Locker, store *memlock.Store) {
	t.Helper()
	store = memlock.New()
	return newLocker(t, store), newLocker(t, store), store
}

func newLocker(t *testing.T, d driver.Driver) *core.Locker {
	t.Helper()
	l, err := core.New(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return l
}

// hold takes a name until the test ends.
func hold(t *testing.T, l *core.Locker, name string) {
	t.Helper()
	x, err := l.TryAcquire(t.Context(), name, core.WithLabel("worker-1.internal"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Release(context.WithoutCancel(t.Context())) })
}

func isFree(t *testing.T, l *core.Locker, name string) bool {
	t.Helper()
	x, err := l.TryAcquire(t.Context(), name)
	if err != nil {
		return false
	}
	return x.Release(t.Context()) == nil
}
