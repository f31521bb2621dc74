//go:build linux

package weather

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// SoakConfig is what a soak tells one of its processes.
type SoakConfig struct {
	Number     int64 // of the process: from 1, never used twice
	Redis      string
	Board      string // the file of the board
	Names      int
	Goroutines int
}

// Sample is what a process of a soak says of itself.
type Sample struct {
	Grants     int64  // since it began
	Overlaps   int64  // somebody else was in the section
	Lost       int64  // leases
	Failed     int64  // calls that failed for another reason than their budget
	Note       string // the first of them
	Heap       uint64
	Files      int
	Goroutines int
}

// board is memory that all processes share: who is in the section of each name.
type board []byte

const cell = 8

func openBoard(file string, names int) (board, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // G304: the run's own directory
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if err := f.Truncate(int64(names * cell)); err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, names*cell, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func (b board) at(name int) *int64 { return (*int64)(unsafe.Pointer(&b[name*cell])) } //nolint:gosec // G103: a page begins at a multiple of 8

// sweep empties the sections of a process that was killed. Its leases live on for a while, so
// nobody else can be in them.
func (b board) sweep(process int64) {
	for i := range len(b) / cell {
		if who := atomic.LoadInt64(b.at(i)); who>>32 == process {
			atomic.CompareAndSwapInt64(b.at(i), who, 0)
		}
	}
}

type soaker struct {
	SoakConfig
	board board
	locks *core.Locker

	grants, overlaps, lost, failed atomic.Int64

	note atomic.Pointer[string]
}

func (s *soaker) fail(err error) {
	text := err.Error()
	s.note.CompareAndSwap(nil, &text)
	s.failed.Add(1)
}

// RunSoak takes and releases until the commands end. To each "sample" it answers with one, as a
// line of JSON.
func RunSoak(c SoakConfig, commands io.Reader, out io.Writer) error {
	b, err := openBoard(c.Board, c.Names)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{
		Addr: c.Redis, PoolSize: 16, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer func() { _ = rdb.Close() }()
	locks, err := core.New(redislock.New(rdb, redislock.WithPrefix(Prefix)), core.WithTTL(soakTTL))
	if err != nil {
		return err
	}
	s := &soaker{SoakConfig: c, board: b, locks: locks}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var all sync.WaitGroup
	for i := range c.Goroutines {
		all.Go(func() { s.work(ctx, int64(i)) })
	}
	in := bufio.NewScanner(commands)
	for in.Scan() {
		if err := json.NewEncoder(out).Encode(s.sample()); err != nil {
			return err
		}
	}
	stop()
	all.Wait()
	return errors.Join(in.Err(), locks.Close(context.Background()))
}

const soakTTL = 5 * time.Second

// work is one goroutine: it waits for names, and stays a moment.
func (s *soaker) work(ctx context.Context, number int64) {
	random := rand.New(rand.NewPCG(uint64(s.Number), uint64(number))) //nolint:gosec // G404, G115: no secret, no negative numbers
	me := s.Number<<32 | number + 1
	for ctx.Err() == nil {
		i := random.IntN(s.Names)
		x, err := s.locks.Acquire(ctx, fmt.Sprint("soak-", i), core.WithWait(2*time.Second))
		switch {
		case err == nil:
			s.section(x, s.board.at(i), me, time.Duration(20+random.IntN(60))*time.Millisecond) //nolint:contextcheck // it works for as long as it has the lease
		case !errors.Is(err, core.ErrHeld) && ctx.Err() == nil:
			s.fail(err)
		}
	}
}

func (s *soaker) section(x *core.Lease, inside *int64, me int64, d time.Duration) {
	s.grants.Add(1)
	if atomic.SwapInt64(inside, me) != 0 {
		s.overlaps.Add(1)
	}
	select {
	case <-time.After(d):
	case <-x.Context().Done():
	}
	trusted := x.Err() == nil
	alone := atomic.CompareAndSwapInt64(inside, me, 0)
	switch {
	case !trusted:
		s.lost.Add(1)
	case !alone:
		s.overlaps.Add(1)
	}
	if err := x.Release(context.Background()); err != nil && trusted {
		s.fail(err)
	}
}

func (s *soaker) sample() Sample {
	runtime.GC()
	runtime.GC() // what the first one has found free
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	note := ""
	if first := s.note.Load(); first != nil {
		note = *first
	}
	return Sample{
		Note:   note,
		Grants: s.grants.Load(), Overlaps: s.overlaps.Load(), Lost: s.lost.Load(), Failed: s.failed.Load(),
		Heap: m.HeapAlloc, Files: descriptors(), Goroutines: runtime.NumGoroutine(),
	}
}
