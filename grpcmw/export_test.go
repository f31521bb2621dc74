package grpcmw

import (
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/holdfast-go/holdfast/core"
)

// NewFrom is New for the services of another registry than the program's own, which has only
// rules that work.
func NewFrom(files *protoregistry.Files, l *core.Locker, opts ...Option) (*Interceptors, error) {
	return newFrom(files, l, opts)
}
