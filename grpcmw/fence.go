package grpcmw

import (
	"context"
	"fmt"

	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
)

// FenceMetadata is the key in a call's metadata that carries the caller's fence to the
// service that keeps the resource: a decimal number.
const FenceMetadata = "holdfast-fence"

// SetFence returns ctx with the fence of the lease of name that it stands under in its outgoing
// metadata, in place of one that is there:
//
//	ctx, err := grpcmw.SetFence(ctx, "order:42")
//	...
//	reply, err := client.UpdateOrder(ctx, req)
//
// Without a lease that has a fence it is fence.ErrInvalid, and the context has no fence: a
// call that was meant to be fenced should not go out without.
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

// Fence reads the fence that came with a call, from the incoming metadata of its context,
// for a guard of package fence. It is fence.ErrInvalid if there is none, more than one, or
// what is none: answer INVALID_ARGUMENT.
//
// It is a number that the caller has claimed, and no lease: it locks nothing, and the lease
// may be over, which is what the guard finds out. It is trusted as the caller is. One that
// was made up can let a late write in, or lock every real holder out, so take it only from
// services of your own. A handler that holds a lock itself has its own fence:
// core.FenceFor.
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
