//go:build linux

package weather

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Library is a lock library that a worker uses.
type Library interface {
	Get(ctx context.Context, a Ask) (Lease, error)
	Close(ctx context.Context) error
}

// Ask is one call. Others than Holdfast are asked for one name, without options.
type Ask struct {
	Names []string
	Try   bool
	Opts  []core.Option
}

// Lease is what a worker gets. Context, Err and ValidUntil are what its library says of trust.
type Lease interface {
	FenceOf(name string) uint64
	Context() context.Context
	Err() error
	ValidUntil() time.Time
	Release(ctx context.Context) error
	Complete(ctx context.Context) error
}

// Opener makes a worker's library, and what ends its connections after Close.
type Opener func(c WorkerConfig) (l Library, hangUp func(), err error)

type holdfast struct{ *core.Locker }

func openHoldfast(c WorkerConfig) (l Library, hangUp func(), err error) {
	store, cut := c.open()
	log, err := os.Create(filepath.Join(c.Dir, c.Life+".log")) // see checkSecrets
	if err != nil {
		return nil, nil, err
	}
	locks, err := core.New(store, core.WithTTL(TTL), core.WithLogger(slog.New(slog.NewJSONHandler(log, nil))))
	return holdfast{locks}, func() { cut(); _ = log.Close() }, err
}

func (h holdfast) Get(ctx context.Context, a Ask) (Lease, error) {
	switch {
	case len(a.Names) > 1:
		return h.AcquireAll(ctx, a.Names, a.Opts...)
	case a.Try:
		return h.TryAcquire(ctx, a.Names[0], a.Opts...)
	default:
		return h.Acquire(ctx, a.Names[0], a.Opts...)
	}
}
