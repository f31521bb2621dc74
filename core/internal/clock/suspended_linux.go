package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// Clock ids of clock_gettime(2).
const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// suspended says how long the machine has been suspended since boot: CLOCK_BOOTTIME minus
// CLOCK_MONOTONIC. The boot time is read first, so a preemption between the two can only make the
// result smaller. It is 0 if the kernel has no such clock.
func suspended() time.Duration {
	boot := gettime(clockBoottime)
	return max(0, boot-gettime(clockMonotonic))
}

// gettime is 0 if the kernel has no such clock.
func gettime(id uintptr) time.Duration {
	var ts syscall.Timespec
	//nolint:gosec // G103: the standard library has no other way to read CLOCK_BOOTTIME
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}
