package door

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/httpmw/internal/reqkey"
)

// Bound is a Door whose names are made of what a request was decoded to, the value that the handler gets.
type Bound[T any] struct {
	*Door

	key adapter.Key[*T]
}

// NewBound checks a rule whose template names fields of T, and that lacks no function. Its errors are [core.ErrInvalid].
func NewBound[T any](r Rule, lacks bool) (*Bound[T], error) {
	if lacks {
		return nil, fmt.Errorf("%w: Bind without a function", core.ErrInvalid)
	}
	if r.KeyFunc {
		return nil, fmt.Errorf("%w: Bind with a KeyFunc: its key is a template with fields of the request", core.ErrInvalid)
	}
	if err := reqkey.CheckLiterals(r.Key); err != nil {
		return nil, err
	}
	k, err := adapter.NewKey(r.Key, adapter.Fields[T]())
	if err != nil {
		return nil, err
	}
	r.Options = append([]core.Option{core.WithTemplate(r.Key)}, r.Options...)
	r.Key, r.KeyFunc = "", true
	d, err := New(r)
	if err != nil {
		return nil, err
	}
	return &Bound[T]{d, k}, nil
}

// Names makes the lock names of a decoded request.
func (b *Bound[T]) Names(ctx context.Context, req *T) ([]string, *Fault) {
	names, err := b.key.Names(ctx, req)
	if err != nil {
		return nil, &Fault{BadKey, err}
	}
	return names, nil
}

// Unread is the fault of a request that could not be decoded.
func Unread(err error) *Fault {
	if _, limited := errors.AsType[*http.MaxBytesError](err); limited || errors.Is(err, key.ErrTooLarge) {
		return &Fault{TooLarge, err}
	}
	return &Fault{BadKey, err}
}
