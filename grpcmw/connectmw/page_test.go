package connectmw_test

import (
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/connectmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/rpctest"
)

// generated stands for what protoc-gen-connect-go writes: shopv1connect.NewOrdersHandler.
type generated struct{}

var shopv1connect generated

func (generated) NewOrdersHandler(_ any, opts ...connect.HandlerOption) (path string, h http.Handler) {
	return refund, connect.NewUnaryHandler(refund, leaseName, opts...)
}

// What follows is the code of docs/guides/rpc.md; examples/readme_test.go compares them.

func handlers(mux *http.ServeMux, locks *core.Locker, orders any) {
	guard := connectmw.WithLocks(locks,
		// One at a time for each order. A second call gets "aborted" at once.
		grpcmw.WithMethod("/shop.v1.Orders/Refund", "order:{order.id}"),

		// A header names the order; the lock is held until the stream is over.
		grpcmw.WithMethod("/shop.v1.Orders/Negotiate", "order:{metadata:x-order|text}", core.WithWait(5*time.Second)),
	)
	mux.Handle(shopv1connect.NewOrdersHandler(orders, guard))
}

func TestTheCodeOfThePageRuns(t *testing.T) {
	t.Parallel()
	locks, _ := rpctest.Lockers(t)
	mux := http.NewServeMux()
	handlers(mux, locks, nil)
	res, err := client(serve(t, refund, mux), refund).CallUnary(t.Context(), order(42))
	if err != nil || res.Msg.GetText() != "order:42" {
		t.Errorf("%v, %v", res, err)
	}
}
