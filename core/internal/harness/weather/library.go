//go:build linux

package weather

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fallback"
)

// Ask is one call.
type Ask struct {
	Names   []string
	Try     bool
	Handoff core.Handoff // to come with, if it is for a name
	Opts    []core.Option
}

// Lease is what a worker gets.
type Lease interface {
	FenceOf(name string) uint64
	Context() context.Context
	Err() error
	ValidUntil() time.Time
	Release(ctx context.Context) error
	Complete(ctx context.Context) error
}

type holdfast struct{ *core.Locker }

// openHoldfast makes a worker's Locker, and what ends its connections after Close.
func openHoldfast(c WorkerConfig) (l holdfast, hangUp func(), err error) {
	store, cut := c.open()
	log, err := os.Create(filepath.Join(c.Dir, c.Life+".log")) // see checkSecrets
	if err != nil {
		return l, nil, err
	}
	locks, err := core.New(fallback.New(store), core.WithTTL(TTL), core.WithLogger(slog.New(slog.NewJSONHandler(log, nil))))
	return holdfast{locks}, func() { cut(); _ = log.Close() }, err
}

func (h holdfast) Get(ctx context.Context, a Ask) (Lease, error) {
	switch {
	case len(a.Names) > 1:
		return h.getAll(ctx, a)
	case a.Handoff.Name() != "":
		opts := a.Opts
		if a.Try {
			opts = append(slices.Clip(opts), core.WithWait(0))
		}
		x, err := h.Attach(ctx, a.Handoff, opts...)
		return single{x}, err
	case a.Try:
		x, err := h.TryAcquire(ctx, a.Names[0], a.Opts...)
		return single{x}, err
	default:
		x, err := h.Acquire(ctx, a.Names[0], a.Opts...)
		return single{x}, err
	}
}

// getAll asks for several names. The context of what it gets does not end with ctx, as that of a single
// lease does not.
func (h holdfast) getAll(ctx context.Context, a Ask) (Lease, error) {
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	s, err := h.AcquireAll(work, a.Names, a.Opts...)
	if !stop() && err == nil { // ctx ended together with the call
		err = ctx.Err()
		_ = s.Release(context.WithoutCancel(ctx)) // told to the log
	}
	return several{s, end}, err
}

// single is the lease of one name.
type single struct{ *core.Lease }

func (x single) FenceOf(string) uint64 { return x.Fence() }

// several is the leases of several names.
type several struct {
	*core.LeaseSet
	end context.CancelCauseFunc // of the context that they were asked for under
}

func (x several) FenceOf(name string) uint64 { return x.Lease(name).Fence() }

func (x several) Release(ctx context.Context) error {
	defer x.end(nil)
	return x.LeaseSet.Release(ctx)
}
