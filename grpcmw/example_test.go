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

// refunds is a service whose Refund says when it runs, and runs until it is let go.
type refunds struct {
	shoppb.UnimplementedOrdersServer
	running, letGo chan struct{}
}

func (s *refunds) Refund(ctx context.Context, _ *shoppb.RefundRequest) (*shoppb.Reply, error) {
	s.running <- struct{}{}
	<-s.letGo
	return &shoppb.Reply{Text: "refunded"}, ctx.Err()
}

func Example() {
	locks, err := core.New(memlock.New()) // redislock.New(rdb), where there is more than one process
	if err != nil {
		log.Fatal(err)
	}
	srv := grpc.NewServer(grpcmw.ServerOptions(locks,
		grpcmw.WithMethod("/shop.v1.Orders/Refund", "order:{order.id}"))...)
	service := &refunds{running: make(chan struct{}, 2), letGo: make(chan struct{})}
	shoppb.RegisterOrdersServer(srv, service)
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
	refund := func(id int64) (*shoppb.Reply, error) {
		return client.Refund(context.Background(), &shoppb.RefundRequest{Order: &shoppb.Order{Id: id}})
	}

	first := make(chan *shoppb.Reply)
	go func() {
		reply, _ := refund(42)
		first <- reply
	}()
	<-service.running // order 42 is locked

	_, err = refund(42)
	fmt.Println("the same order: ", status.Code(err))

	close(service.letGo)
	reply, _ := refund(7)
	fmt.Println("another order:  ", reply.GetText())
	fmt.Println("the first one:  ", (<-first).GetText())

	_ = conn.Close()
	srv.GracefulStop()
	if err := locks.Close(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// the same order:  Aborted
	// another order:   refunded
	// the first one:   refunded
}
