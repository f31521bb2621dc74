package inspector_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/inspector"
)

// leases tells an observer of so many leases of 2000 names, at so many a second, and returns when the last one ended.
func leases(seen func(core.Event), n int, from time.Time, each time.Duration) time.Time {
	at := from
	for i := range n {
		e := core.Event{Kind: core.EventAcquired, Name: fmt.Sprintf("order:%d", i%2000), At: at, Fence: uint64(i + 1)}
		seen(e)
		at = at.Add(each)
		seen(core.Event{Kind: core.EventReleased, Name: e.Name, At: at, Held: each})
	}
	return at
}

// heap is what the program keeps, in MiB.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc >> 20)
}

// It must not run beside others: it measures the heap.
func TestARecorderKeepsLittleOfABusyService(t *testing.T) { //nolint:paralleltest // as said
	before := heap()
	r := inspector.NewRecorder()
	seen := r.Observe
	end := leases(seen, 600_000, time.Now(), time.Millisecond) // within ten minutes
	if kept := heap() - before; kept > 24 {
		t.Errorf("%d MiB after 600,000 leases", kept)
	}
	end = end.Add(16 * time.Minute)
	seen(core.Event{Kind: core.EventHeld, Name: "order:1", At: end})
	if kept := heap() - before; kept > 2 {
		t.Errorf("%d MiB when all of it is past", kept)
	}
	runtime.KeepAlive(r)
}
