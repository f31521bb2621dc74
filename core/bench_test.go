package core_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
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

// What a label costs that each call makes anew, as the middleware does. Each call has one option, since an option costs by itself.
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
