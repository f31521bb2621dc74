package connectmw_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"connectrpc.com/connect"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/connectmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

func ExampleWithLocks() {
	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	guard := connectmw.WithLocks(locks, grpcmw.WithMethod("/shop.v1.Orders/Refund", "order:{order.id}"))
	mux := http.NewServeMux()
	mux.Handle("/shop.v1.Orders/Refund", connect.NewUnaryHandler("/shop.v1.Orders/Refund",
		func(ctx context.Context, _ *connect.Request[testpb.RefundRequest]) (*connect.Response[testpb.Reply], error) {
			lease, _ := core.FromContext(ctx)
			return connect.NewResponse(&testpb.Reply{Text: "refunded under " + lease.Name()}), nil
		}, guard)) // generated code: mux.Handle(shopv1connect.NewOrdersHandler(orders, guard))
	srv := httptest.NewServer(mux)
	defer srv.Close()

	client := connect.NewClient[testpb.RefundRequest, testpb.Reply](srv.Client(), srv.URL+"/shop.v1.Orders/Refund")
	res, err := client.CallUnary(ctx, connect.NewRequest(&testpb.RefundRequest{Order: &testpb.Order{Id: 42}}))
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Msg.GetText())
	_, err = client.CallUnary(ctx, connect.NewRequest(&testpb.RefundRequest{}))
	fmt.Println(connect.CodeOf(err))
	// Output:
	// refunded under order:42
	// invalid_argument
}
