package bench

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// place is a file that is mapped into every process of a run: who began the last release, and when.
type place struct {
	freedBy atomic.Uint64
	freedAt atomic.Int64 // by the monotonic clock
}

// mapPlace maps the file, which grows if it has to.
func mapPlace(path string) (*place, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // G304: our own temporary file
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := int(unsafe.Sizeof(place{}))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", path, err)
	}
	return (*place)(unsafe.Pointer(&mem[0])), nil //nolint:gosec // G103: a mapping is aligned to pages
}
