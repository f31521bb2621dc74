package core

import (
	"context"
	"runtime"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast/core/driver"
)

// agreeable is a backend that grants everything and remembers nothing, so that what is measured is core's.
type agreeable struct{}

func (agreeable) Acquire(context.Context, driver.Claim) (driver.Grant, error) {
	return driver.Grant{Fence: 1}, nil
}

func (agreeable) Renew(_ context.Context, claims []driver.Claim) []error {
	return make([]error, len(claims))
}

func (agreeable) Release(context.Context, driver.Claim) error { return nil }

func (agreeable) Capabilities() driver.Capabilities {
	return driver.Capabilities{Punctual: true, Fence: true}
}

// held is a Locker with n leases of names that are somebody else's memory.
func held(b *testing.B, names []string) (*Locker, []*Lease) {
	b.Helper()
	locks, err := New(agreeable{})
	if err != nil {
		b.Fatal(err)
	}
	leases := make([]*Lease, len(names))
	for i, name := range names {
		if leases[i], err = locks.Acquire(context.Background(), name); err != nil {
			b.Fatal(err)
		}
	}
	return locks, leases
}

func namesFor(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "order:" + strconv.Itoa(i)
	}
	return names
}

// BenchmarkHold is an acquire that is not followed by a release; bytes/lease is what it has left
// behind, without its name.
func BenchmarkHold(b *testing.B) {
	names := namesFor(b.N)
	before := inUse()
	b.ReportAllocs()
	b.ResetTimer()
	locks, leases := held(b, names)
	b.StopTimer()
	b.ReportMetric((inUse()-before)/float64(b.N), "bytes/lease")
	locks.engine.watchdog.abandon()
	runtime.KeepAlive(leases)
	runtime.KeepAlive(names)
}

// BenchmarkRenew is a renewal of one lease among 10,000, on its way with the usual number of
// others.
func BenchmarkRenew(b *testing.B) {
	locks, leases := held(b, namesFor(10_000))
	k := locks.engine.watchdog
	batch := make([]*tenure, 0, maxBatch)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += maxBatch {
		batch = batch[:0]
		for j := range maxBatch {
			t := leases[(i+j)%len(leases)].tenure
			t.mu.Lock()
			t.renewing = true
			t.inFlight++
			t.mu.Unlock()
			batch = append(batch, t)
		}
		k.renewers.renew(batch)
	}
	b.StopTimer()
	k.abandon()
}

// inUse is the memory of the heap once what is garbage has gone.
func inUse() float64 {
	runtime.GC()
	runtime.GC() // what pools kept over the first one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
