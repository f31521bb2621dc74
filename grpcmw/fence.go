package grpcmw

import (
	"context"
	"fmt"

	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
)

// FenceMetadata is the key in a call's metadata that carries the caller's fence, a decimal number, to
// the service that keeps the resource.
const FenceMetadata = "holdfast-fence"

// SetFence returns ctx with the fence of the lease of name that ctx stands under in its outgoing
// metadata. It replaces a fence that is already there:
//
//	ctx, err := grpcmw.SetFence(ctx, "order:42")
//	...
//	reply, err := client.UpdateOrder(ctx, req)
//
// If there is no such lease, or it has no fence, the error is fence.ErrInvalid, and the context has
// no fence. Do not send the call then.
func SetFence(ctx context.Context, name string) (context.Context, error) {
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	if md == nil {
		md = metadata.MD{}
	}
	md.Delete(FenceMetadata)
	f, err := core.FenceFor(ctx, name)
	if err != nil {
		err = fmt.Errorf("grpcmw: SetFence: %w: %w", fence.ErrInvalid, err)
	} else {
		md.Set(FenceMetadata, fmt.Sprint(f))
	}
	return metadata.NewOutgoingContext(ctx, md), err
}

// Fence reads the fence that came with a call, from the incoming metadata of its context, for a guard
// of package fence. The error is fence.ErrInvalid if there is no fence, more than one, or an invalid
// one: answer INVALID_ARGUMENT.
//
// The fence is only a number that the caller claims. It locks nothing, and the lease may have ended;
// the guard finds that out. You can trust the fence as much as the caller. A made-up fence can let a
// late write in, or lock every real holder out. So accept it only from your own services. A handler
// that holds a lock itself uses its own fence: core.FenceFor.
func Fence(ctx context.Context) (uint64, error) {
	values := metadata.ValueFromIncomingContext(ctx, FenceMetadata)
	if len(values) != 1 {
		return 0, fmt.Errorf("grpcmw: %w: %d values of %s, want one", fence.ErrInvalid, len(values), FenceMetadata)
	}
	f, err := fence.Parse(values[0])
	if err != nil {
		return 0, fmt.Errorf("grpcmw: %s: %w", FenceMetadata, err)
	}
	return f, nil
}
