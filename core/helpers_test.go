package core_test

import (
	"context"
	"time"
)

// tired is longer than turns go on for.
const tired = 6 * time.Millisecond

// held is a lease or a set of leases.
type held interface {
	Release(ctx context.Context) error
	Context() context.Context
}
