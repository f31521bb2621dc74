//go:build next

package core_test

import (
	"context"
	"testing"

	memlock "github.com/holdfast-go/holdfast/core/internal/contract/memory"
	core "github.com/holdfast-go/holdfast/core/internal/next"
)

func BenchmarkAcquireRelease(b *testing.B) {
	locks, err := core.New(memlock.New())
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		lease, err := locks.Acquire(ctx, "name")
		if err != nil {
			b.Fatal(err)
		}
		if err := lease.Release(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDo(b *testing.B) {
	locks, err := core.New(memlock.New())
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context() // can be cancelled, as a request's can
	work := func(context.Context) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		if err := locks.Do(ctx, "name", work); err != nil {
			b.Fatal(err)
		}
	}
}

// What a label costs that each call makes anew. Each call has one option, since an option costs by itself. Doors make
// their labels once for each route: BenchmarkDoor of package httpmw has that.
func BenchmarkLabel(b *testing.B) {
	for name, opt := range map[string]core.Option{
		"none": core.WithLabel(""), "process": core.WithOperation(""), "route": core.WithOperation("POST /orders/:id/pay"),
	} {
		b.Run(name, func(b *testing.B) {
			locks, err := core.New(memlock.New())
			if err != nil {
				b.Fatal(err)
			}
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				lease, err := locks.Acquire(ctx, "name", opt)
				if err != nil {
					b.Fatal(err)
				}
				if err := lease.Release(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
