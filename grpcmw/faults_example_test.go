package grpcmw_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	shoppb "github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// In a test of your own, memlock.Store breaks as a lock service does.
func Example_faults() {
	ctx := context.Background()
	store := memlock.New()
	locks, err := core.New(store, core.WithTTL(300*time.Millisecond)) // it is renewed every 100 ms
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)
	guard := grpcmw.UnaryServerInterceptor(locks, grpcmw.WithMethod("/shop.v1.Orders/Refund", "order:{order.id}"))

	// A server would call it like this:
	refund := func(id int64) {
		info := &grpc.UnaryServerInfo{FullMethod: "/shop.v1.Orders/Refund"}
		_, err := guard(ctx, &shoppb.RefundRequest{Order: &shoppb.Order{Id: id}}, info, func(ctx context.Context, _ any) (any, error) {
			store.Steal("order:42") // while the method is at work
			<-ctx.Done()
			fmt.Println("the method:", context.Cause(ctx))
			return nil, ctx.Err()
		})
		fmt.Println("the caller:", status.Code(err))
	}
	refund(42)
	store.SetDown(true)
	refund(7)
	// Output:
	// the method: holdfast: lease of "order:42" lost: taken
	// the caller: Aborted
	// the caller: Unavailable
}
