package bench

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// section is what the locks guard: a file that is mapped into every process of a run, with
// one place for each name. It sees what no lock library can hide: two holders at once, and a
// fence that is not larger than the one before.
type section struct{ mem []byte }

// place belongs to whoever holds its name. It fills a cache line, so that holders of
// different names do not slow each other down.
type place struct {
	holder  atomic.Uint64 // 0 for nobody
	fence   atomic.Uint64 // the largest seen, over all rounds
	freedBy atomic.Uint64 // who began the last release,
	freedAt atomic.Int64  // and when, by the monotonic clock
	_       [32]byte
}

const placeSize = int(unsafe.Sizeof(place{}))

// mapSection maps the first places of the file, which grows if it has to.
func mapSection(path string, places int) (*section, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // G304: our own temporary file
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := places * placeSize
	if info, err := f.Stat(); err != nil || info.Size() < int64(size) {
		if err := f.Truncate(int64(size)); err != nil {
			return nil, err
		}
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", path, err)
	}
	return &section{mem}, nil
}

func (s *section) place(i int) *place {
	return (*place)(unsafe.Pointer(&s.mem[i*placeSize])) //nolint:gosec // G103: a mapping is aligned to pages
}

// clear forgets holders that a killed process has left behind. Fences stay: they are to grow
// from round to round too.
func (s *section) clear() {
	for i := range len(s.mem) / placeSize {
		p := s.place(i)
		p.holder.Store(0)
		p.freedBy.Store(0)
	}
}

func (s *section) close() { must(unix.Munmap(s.mem)) } // it was mapped

// enter says whether who is alone and has a larger fence than everybody before. A fence of 0
// is none.
func (p *place) enter(who, fence uint64) (alone, grown bool) {
	alone = p.holder.CompareAndSwap(0, who)
	grown = true
	if fence > 0 {
		grown = fence > p.fence.Load()
		p.fence.Store(max(fence, p.fence.Load()))
	}
	return alone, grown
}

// leave says whether who was still alone.
func (p *place) leave(who uint64) (alone bool) { return p.holder.CompareAndSwap(who, 0) }
