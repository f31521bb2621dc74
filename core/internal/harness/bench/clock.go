package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic reads the clock that all processes of a machine share. Go's own monotonic
// reading is of the same clock, but tells only differences inside one process.
func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every Unix has it
	}
	return time.Duration(ts.Nano())
}

func sleepUntil(at time.Duration) { time.Sleep(at - monotonic()) }

// cpuTime is what the process has used, in user and kernel mode.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err) // only a bad argument fails
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
