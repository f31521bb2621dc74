package core_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
)

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

// agreeable is a backend that grants everything and remembers nothing, so that what is measured is core's.
type agreeable struct{}

func (agreeable) Acquire(context.Context, driver.Claim) (driver.Grant, error) {
	return driver.Grant{Fence: 1}, nil
}

func (agreeable) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return agreeable{}.Acquire(ctx, c)
}

func (agreeable) Renew(_ context.Context, claims []driver.Claim) []error {
	return make([]error, len(claims))
}

func (agreeable) Release(context.Context, driver.Claim) error { return nil }

func (agreeable) Capabilities() driver.Capabilities {
	return driver.Capabilities{Punctual: true, Forgets: true, Fence: true}
}

// BenchmarkHold is an acquire that is not followed by a release; bytes/lease is what it has left behind, without its name.
func BenchmarkHold(b *testing.B) {
	names, leases := make([]string, b.N), make([]*core.Lease, b.N)
	for i := range names {
		names[i] = "order:" + strconv.Itoa(i)
	}
	locks, err := core.New(agreeable{}, core.WithMaxLeases(b.N+1))
	if err != nil {
		b.Fatal(err)
	}
	before := inUse()
	b.ReportAllocs()
	b.ResetTimer()
	for i, name := range names {
		if leases[i], err = locks.Acquire(context.Background(), name); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric((inUse()-before)/float64(b.N), "bytes/lease")
	runtime.KeepAlive(names)
	for _, x := range leases {
		if err := x.Release(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// inUse is the memory of the heap once what is garbage has gone.
func inUse() float64 {
	runtime.GC()
	runtime.GC() // what pools kept over the first one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
