package httpmw

import (
	"context"
	"fmt"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
)

// FenceHeader is the header that carries the caller's fence, a decimal number, to the service that
// keeps the resource.
const FenceHeader = "Holdfast-Fence"

// SetFence puts the fence of the lease of name that ctx stands under into the headers of a request.
// It replaces a fence that is already there:
//
//	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, body)
//	...
//	err = httpmw.SetFence(ctx, "order:42", req.Header)
//
// If there is no such lease, or it has no fence, the error is fence.ErrInvalid, and the headers
// contain no fence. Do not send the request then.
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

// Fence reads the fence that came with a request, for a guard of package fence. The error is
// fence.ErrInvalid if there is no fence, more than one, or an invalid one: answer 400.
//
// The fence is only a number that the sender claims. It locks nothing, and the lease may have ended;
// the guard finds that out. You can trust the fence as much as the sender. A made-up fence can let a
// late write in, or lock every real holder out. So a service that the public reaches should drop the
// header, with r.Header.Del(httpmw.FenceHeader), and accept it only from your own services. A handler
// that holds a lock itself uses its own fence: core.FenceFor.
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
