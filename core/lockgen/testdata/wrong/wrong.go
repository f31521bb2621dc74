// Package wrong has a comment on a field that is not there.
package wrong

import "context"

// Request is a request.
type Request struct{ ID int }

// Service has one method.
type Service interface {
	//holdfast:lock order:{req.Nothing}
	Pay(ctx context.Context, req *Request) error
}
