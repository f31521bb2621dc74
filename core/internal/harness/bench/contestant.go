package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// ttl of all leases: Holdfast's default.
const ttl = 10 * time.Second

// contestant is a lock library in one configuration, or a floor that no lock can pass.
type contestant struct {
	name     string
	settings string // what is not as the library has it without options
	peer     bool   // another library

	renewEvery time.Duration // period of its watchdog, 0 if it has none
	open       func(addr string, t *traffic) (locker, error)
}

// locker is an instance of a lock library.
type locker interface {
	// lock waits for the name. It goes on where the library gives up by itself, and returns an error if ctx ends or something fails.
	lock(ctx context.Context, name string) (lease, error)
	close(ctx context.Context) error
}

// lease is a held name. It may have an Err() error that says when it is lost.
type lease interface {
	Release(ctx context.Context) error
}

func lost(x lease) bool {
	e, ok := x.(interface{ Err() error })
	return ok && e.Err() != nil
}

const (
	holdfastName  = "Holdfast"
	beforeName    = "Holdfast before" // the same at another commit: a program of this one's kind that was built there; see tools/bench-against.sh
	floorName     = "floor"
	autoFloorName = "floor auto-pipelined"
)

// contestants are all there are.
func contestants() []contestant {
	// The floors are the least that a lock with an owner-checked release can be: SET NX and a compare-and-delete script, without
	// fence, watchdog, line or trust.
	return append([]contestant{{
		name: holdfastName, settings: "no options: fence, watchdog and line on", renewEvery: ttl / 3,
		open: func(addr string, t *traffic) (locker, error) {
			rdb := client(addr, t)
			locks, err := core.New(redislock.New(rdb))
			return &holdfast{rdb, locks}, err
		},
	}, {
		name: beforeName, settings: "the same at another commit", renewEvery: ttl / 3,
	}, {
		name: floorName, settings: "bare SET NX and EVALSHA, each on a connection of its own",
		open: func(addr string, t *traffic) (locker, error) {
			rdb := client(addr, t)
			return &floor{rdb: rdb, cmd: rdb, prefix: rand.Text()}, nil
		},
	}, {
		name: autoFloorName, settings: "the same through go-redis' AutoPipeline with its default options",
		open: func(addr string, t *traffic) (locker, error) {
			rdb := client(addr, t)
			auto, err := rdb.AutoPipeline()
			return &floor{rdb: rdb, cmd: auto, prefix: rand.Text()}, err
		},
	}}, peers()...)
}

func contestantNamed(name string) (c contestant, ok bool) {
	all := contestants()
	i := slices.IndexFunc(all, func(c contestant) bool { return c.name == name })
	if i < 0 {
		return c, false
	}
	return all[i], true
}

type holdfast struct {
	rdb   *redis.Client
	locks *core.Locker
}

func (h *holdfast) lock(ctx context.Context, name string) (lease, error) {
	return h.locks.Acquire(ctx, name)
}

func (h *holdfast) close(ctx context.Context) error {
	defer func() { _ = h.rdb.Close() }()
	return h.locks.Close(ctx)
}

var (
	errHeld     = errors.New("held")
	errNotOwner = errors.New("not the owner")
)

var floorRelease = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

type floor struct {
	rdb    *redis.Client
	cmd    redis.Cmdable // rdb, or what batches its commands
	prefix string        // of tokens
	last   atomic.Uint64
}

type floorLease struct {
	floor       *floor
	name, token string
}

func (f *floor) lock(ctx context.Context, name string) (lease, error) {
	x := &floorLease{f, "floor:" + name, f.prefix + strconv.FormatUint(f.last.Add(1), 36)}
	ok, err := f.cmd.SetNX(ctx, x.name, x.token, ttl).Result()
	if err == nil && !ok {
		err = errHeld // a floor does not wait
	}
	return x, err
}

func (x *floorLease) Release(ctx context.Context) error {
	n, err := floorRelease.Run(ctx, x.floor.cmd, []string{x.name}, x.token).Int()
	if err == nil && n != 1 {
		err = errNotOwner
	}
	return err
}

func (f *floor) close(context.Context) error { return f.rdb.Close() }
