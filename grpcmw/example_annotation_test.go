package grpcmw_test

import (
	"fmt"
	"log"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	shoppb "github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// The rules stand in the .proto file:
//
//	service Orders {
//	  rpc Refund(RefundRequest) returns (Reply) {
//	    option (holdfast.v1.lock) = {key: "order:{order.id}"};
//	  }
//	  …
//	}
//
// The option given here is a default for all of them.
func ExampleWithAnnotations() {
	locks, err := core.New(memlock.New())
	if err != nil {
		log.Fatal(err)
	}
	guard, err := grpcmw.New(locks, grpcmw.WithAnnotations(core.WithTTL(20*time.Second)))
	if err != nil {
		log.Fatal(err)
	}
	srv := grpc.NewServer(guard.ServerOptions()...)
	shoppb.RegisterOrdersServer(srv, shoppb.UnimplementedOrdersServer{})
	for _, method := range guard.Methods() {
		fmt.Println(method)
	}
	// Output:
	// /shop.v1.Orders/Refund
}
