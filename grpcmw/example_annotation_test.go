package grpcmw_test

import (
	"context"
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
//	service Stock {
//	  rpc Reserve(RefundRequest) returns (Reply) {
//	    option (holdfast.v1.lock) = {key: "order:{order.id}"};
//	  }
//	  …
//	  rpc Look(RefundRequest) returns (Reply);
//	}
//
// The option given here is a default for all of them.
func ExampleWithAnnotations() {
	locks, err := core.New(memlock.New())
	if err != nil {
		log.Fatal(err)
	}
	door, err := grpcmw.New(locks, grpcmw.WithAnnotations(core.WithTTL(20*time.Second)))
	if err != nil {
		log.Fatal(err)
	}
	srv := grpc.NewServer(door.ServerOptions()...)
	shoppb.RegisterStockServer(srv, shoppb.UnimplementedStockServer{})
	for _, method := range door.Methods() {
		fmt.Println(method)
	}
	// Output:
	// /shop.annotated.v1.Stock/Import
	// /shop.annotated.v1.Stock/Negotiate
	// /shop.annotated.v1.Stock/Reserve
	// /shop.annotated.v1.Stock/Ship
	// /shop.annotated.v1.Stock/Watch
}

// An organisation may have an option of its own, here
//
//	extend google.protobuf.MethodOptions { Policy policy = 50002; }
//	message Policy {
//	  string lock = 1;
//	  bool audit = 2;
//	}
//
// of which a method has {lock: "book:{note}", audit: true}.
func ExampleWithMethodOption() {
	locks, err := core.New(memlock.New())
	if err != nil {
		log.Fatal(err)
	}
	door := grpcmw.UnaryServerInterceptor(locks, grpcmw.WithMethodOption(shoppb.E_Policy,
		func(p *shoppb.Policy) (string, []core.Option, error) {
			if p.GetLock() == "" {
				return "", nil, grpcmw.ErrNoLock // a policy that says nothing of locks
			}
			return p.GetLock(), []core.Option{core.WithWait(2 * time.Second)}, nil
		}))

	// A server would call it like this:
	info := &grpc.UnaryServerInfo{FullMethod: "/shop.annotated.v1.Audits/Close"}
	_, err = door(context.Background(), &shoppb.RefundRequest{Note: "2026-11"}, info, func(ctx context.Context, _ any) (any, error) {
		lease, _ := core.FromContext(ctx)
		fmt.Println("closing under", lease.Name())
		return &shoppb.Reply{}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// closing under book:2026-11
}
