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
