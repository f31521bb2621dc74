package connectmw_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"connectrpc.com/connect"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/connectmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
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

func Example() {
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	handlers(mux, locks, nil)
	srv := httptest.NewServer(mux)
	defer srv.Close()

	client := connect.NewClient[testpb.RefundRequest, testpb.Reply](srv.Client(), srv.URL+"/shop.v1.Orders/Refund")
	res, err := client.CallUnary(context.Background(), connect.NewRequest(&testpb.RefundRequest{Order: &testpb.Order{Id: 42}}))
	if err != nil {
		panic(err)
	}
	fmt.Println("refunded under", res.Msg.GetValue())
	_, err = client.CallUnary(context.Background(), connect.NewRequest(&testpb.RefundRequest{}))
	fmt.Println(connect.CodeOf(err))
	// Output:
	// refunded under order:42
	// invalid_argument
}
