// Grpc shows Holdfast in a gRPC server, with nothing to set up:
//
//	go run ./examples/grpc
//
// What is locked stands beside the methods, in orderspb/orders.proto. Clients meet contention, on a bidi stream too, and one
// with nothing but gRPC's own retry policy gets through. The exit status is 0 only if everything was as the output says.
//
// The files: chain.go is the recipe, how the lock stands among other interceptors; orders.go is the service, and story.go
// who calls it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/examples/grpc/orderspb"
	"github.com/holdfast-go/holdfast/grpcmw"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, chain)
	stop()
	if err != nil {
		fmt.Println("\nFAILED:", err)
		os.Exit(1)
	}
	fmt.Println("\nAll as promised.")
}

// run serves, and tells the story.
func run(ctx context.Context, out io.Writer, chain func(*grpcmw.Interceptors) []grpc.ServerOption) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	locks, err := core.New(memlock.New()) // in production core/redislock: all servers share the locks
	if err != nil {
		return err
	}
	// Every method that has the option (holdfast.v1.lock). A rule that cannot work is an error here, with the method's name.
	locking, err := grpcmw.New(locks, grpcmw.WithAnnotations())
	if err != nil {
		return err
	}
	address, stop, err := serve(ctx, orders{}, chain(locking))
	if err != nil {
		return err
	}
	err = tell(ctx, out, address, locking.Methods())
	stop() // first the server, and then the locks
	return errors.Join(err, locks.Close(ctx))
}

func serve(ctx context.Context, s orderspb.OrdersServer, opts []grpc.ServerOption) (address string, stop func(), err error) {
	lis, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
	orderspb.RegisterOrdersServer(srv, s)
	healthpb.RegisterHealthServer(srv, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	return lis.Addr().String(), func() { srv.Stop(); <-served }, nil
}
