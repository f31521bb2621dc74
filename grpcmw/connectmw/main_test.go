package connectmw_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	request = testpb.RefundRequest
	reply   = testpb.Reply
)

const (
	refund    = "/shop.v1.Orders/Refund"
	watch     = "/shop.v1.Orders/Watch"
	negotiate = "/shop.v1.Orders/Negotiate"
)

// order is a request for an order; 0 is one that names none.
func order(id int64) *connect.Request[request] {
	return connect.NewRequest(&request{Order: &testpb.Order{Id: id}})
}

// leaseName answers with the name of the lease, "none" if there is none.
func leaseName(ctx context.Context, _ *connect.Request[request]) (*connect.Response[reply], error) {
	return connect.NewResponse(&reply{Value: name(ctx)}), nil
}

func name(ctx context.Context) string {
	if x, ok := core.FromContext(ctx); ok {
		return x.Name()
	}
	return "none"
}

// serve serves a handler over HTTP/2, which all kinds of streams need.
func serve(t *testing.T, procedure string, h http.Handler) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(procedure, h)
	return serveAll(t, mux)
}

func serveAll(t *testing.T, mux *http.ServeMux) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(mux)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

func client(srv *httptest.Server, procedure string, opts ...connect.ClientOption) *connect.Client[request, reply] {
	return connect.NewClient[request, reply](srv.Client(), srv.URL+procedure, opts...)
}
