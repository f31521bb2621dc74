package grpcmw_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	shoppb "github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// refunds is a service.
type refunds struct {
	shoppb.UnimplementedOrdersServer
}

func (refunds) Refund(ctx context.Context, _ *shoppb.RefundRequest) (*shoppb.Reply, error) {
	lease, _ := core.FromContext(ctx)
	return &shoppb.Reply{Value: "refunded under " + lease.Name()}, ctx.Err()
}

func Example() {
	ctx := context.Background()
	locks, err := core.New(memlock.New()) // redislock.New(rdb), where there is more than one process
	if err != nil {
		log.Fatal(err)
	}
	srv := grpc.NewServer(grpcmw.ServerOptions(locks,
		grpcmw.WithMethod("/shop.v1.Orders/Refund", "order:{order.id}"))...)
	shoppb.RegisterOrdersServer(srv, refunds{})
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = srv.Serve(lis) }()
	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	client := shoppb.NewOrdersClient(conn)

	err = locks.Do(ctx, "order:42", func(ctx context.Context) error { // somebody works on order 42
		for _, id := range []int64{7, 42} {
			reply, err := client.Refund(ctx, &shoppb.RefundRequest{Order: &shoppb.Order{Id: id}})
			fmt.Println(id, reply.GetValue(), status.Code(err))
		}
		return nil
	})
	fmt.Println(err)

	_ = conn.Close()
	srv.GracefulStop()
	if err := locks.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 7 refunded under order:7 OK
	// 42  Aborted
	// <nil>
}
