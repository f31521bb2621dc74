package httpmw

import (
	"context"
	"fmt"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
)

// FenceHeader carries the caller's fence to the service that keeps the resource: a decimal
// number.
const FenceHeader = "Holdfast-Fence"

// SetFence puts the fence of the lease of name that ctx stands under into the headers of a request,
// in place of one that is there:
//
//	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, body)
//	...
//	err = httpmw.SetFence(ctx, "order:42", req.Header)
//
// Without a lease that has a fence it is fence.ErrInvalid, and no fence is in the headers:
// a request that was meant to be fenced should not go out without.
func SetFence(ctx context.Context, name string, h http.Header) error {
	if h == nil {
		return fmt.Errorf("httpmw: SetFence: %w: nil headers", fence.ErrInvalid)
	}
	h.Del(FenceHeader)
	f, err := core.FenceFor(ctx, name)
	if err != nil {
		return fmt.Errorf("httpmw: SetFence: %w: %w", fence.ErrInvalid, err)
	}
	h.Set(FenceHeader, fmt.Sprint(f))
	return nil
}

// Fence reads the fence that came with a request, for a guard of package fence. It is
// fence.ErrInvalid if there is none, more than one, or what is none: answer 400.
//
// It is a number that the sender has claimed, and no lease: it locks nothing, and the lease
// may be over, which is what the guard finds out. It is trusted as the sender is. One that
// was made up can let a late write in, or lock every real holder out, so a service that the
// public reaches should drop the header, r.Header.Del(httpmw.FenceHeader), and take it only
// from services of its own. A handler that holds a lock itself has its own fence:
// core.FenceFor.
func Fence(h http.Header) (uint64, error) {
	values := h.Values(FenceHeader)
	if len(values) != 1 {
		return 0, fmt.Errorf("httpmw: %w: %d values of %s, want one", fence.ErrInvalid, len(values), FenceHeader)
	}
	f, err := fence.Parse(values[0])
	if err != nil {
		return 0, fmt.Errorf("httpmw: %s: %w", FenceHeader, err)
	}
	return f, nil
}
