package main

import (
	"context"
	"slices"
	"time"
)

// ttl of all leases: Holdfast's default.
const ttl = 10 * time.Second

// contestant is a lock library in one configuration, or a floor that no lock can pass.
type contestant struct {
	name     string
	settings string // what is not as the library has it without options
	prefix   string // of the keys at the server that are its locks
	peer     bool   // another library

	renewEvery time.Duration // period of its watchdog, 0 if it has none
	open       func(addr string, t *traffic) (locker, error)
}

// locker is one process's instance of a lock library.
type locker interface {
	// lock waits for the name. It goes on where the library gives up by itself, and returns
	// an error if ctx ends or something fails.
	lock(ctx context.Context, name string) (lease, error)
	close(ctx context.Context) error
}

// lease is a held name. It may have a Fence() uint64, and an Err() error that says when it
// is lost.
type lease interface {
	Release(ctx context.Context) error
}

func fenceOf(x lease) uint64 {
	if f, ok := x.(interface{ Fence() uint64 }); ok {
		return f.Fence()
	}
	return 0
}

func lost(x lease) bool {
	e, ok := x.(interface{ Err() error })
	return ok && e.Err() != nil
}

// contestants are all there are.
func contestants() []contestant {
	return slices.Concat(holdfasts(), floors(), []contestant{newBSM(10 * time.Millisecond), newRedsync()}, rueidislocks())
}

func contestantNamed(name string) (contestant, bool) {
	all := contestants()
	i := slices.IndexFunc(all, func(c contestant) bool { return c.name == name })
	if i < 0 {
		return contestant{}, false
	}
	return all[i], true
}

// The contestants of many scenarios, by name.
var (
	ours         = []string{holdfastName}
	rueidisNames = []string{"rueidislock", "rueidislock noloop"}
	waitingNames = slices.Concat([]string{"bsm 10 ms", "redsync"}, rueidisNames)
)
