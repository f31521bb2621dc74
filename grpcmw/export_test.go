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

// Usable is what the door says of a key function's name.
func Usable(name string) bool { return usable(name) }
