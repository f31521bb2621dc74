package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// lineCoreCases run core in several processes on a backend that is a driver.Queuer.
var lineCoreCases = []testCase{
	{name: "ProcessesAreServedInTheirOrder", crowd: true, run: waiting(func(e *env) {
		x := e.held()
		var calls []*acquire
		for range 5 {
			calls = append(calls, e.acquire(e.locker(e.Driver())))
		}
		_, err := e.locker(e.Driver()).TryAcquire(e.Context(), "name")
		e.isHeld(err)
		e.noError(x.Release(e.Context()))
		var fence uint64
		for i, c := range calls {
			x := c.within(0, fmt.Sprintf("process %d", i))
			for _, later := range calls[i+1:] {
				if later.ended() {
					e.Fatalf("one behind process %d was served before it ended", i)
				}
			}
			if x.Fence() != 0 && x.Fence() <= fence {
				e.Errorf("fence %d after %d", x.Fence(), fence)
			}
			fence = x.Fence()
			_, err := e.locker(e.Driver()).TryAcquire(e.Context(), "name")
			e.isHeld(err)
			e.noError(x.Release(e.Context()))
		}
		e.nothingLeft()
	})},
	{name: "GoroutinesOfProcessesAreServedInTurns", crowd: true, run: waiting(func(e *env) {
		x := e.held()
		lockers := []*core.Locker{e.locker(e.Driver()), e.locker(e.Driver()), e.locker(e.Driver())}
		var wg sync.WaitGroup
		for i := range 90 {
			wg.Go(func() {
				y, err := lockers[i%3].Acquire(e.Context(), "name", core.WithTTL(e.longTTL()))
				if err != nil {
					e.Error(err)
					return
				}
				time.Sleep(time.Millisecond)
				e.noErrorHere(y.Release(e.Context()))
			})
		}
		e.longer(len(lockers)-1, e.lineUpFor(), nil)
		e.noError(x.Release(e.Context()))
		const trips = 90 * 10
		e.within(time.Second+e.lag(trips), "serving all", wg.Wait)
		e.nothingLeft()
	})},
	{name: "AWaiterKilledInLineHoldsOthersUpForItsPlaceLife", run: waiting(func(e *env) {
		x := e.held()
		q, _ := e.Driver().(queuer)
		dead := e.place()
		e.lineUp(q, dead) // its process dies now
		alive := e.acquire(e.locker(e.Driver()))
		e.noError(x.Release(e.Context()))
		alive.release(driver.PlaceLife(dead.TTL)+driver.Recheck(dead.TTL), "the one behind it")
		e.closeIdle(q)
	})},
	{name: "AHolderKilledBeforeALineIsFollowedByTheFirst", run: waiting(func(e *env) {
		d := e.Driver()
		c := e.claim("name")
		e.grant(d, c) // its process dies now
		first, second := e.acquire(e.locker(e.Driver())), e.acquire(e.locker(e.Driver()))
		x := first.within(e.ttl+50*time.Millisecond, "the first in line")
		if second.ended() {
			e.Error("the second was served, too")
		}
		e.noError(x.Release(e.Context()))
		second.release(0, "the second in line")
		e.nothingLeft()
	})},
	{name: "WaitersCancelledAtTheReleaseLeaveNothing", crowd: true, run: waiting(func(e *env) {
		for range 10 {
			x := e.held()
			var calls []*acquire
			const processes = 3
			before := e.queueLength() // some of the last round may be about to leave
			for range processes {
				locks := e.locker(e.Driver())
				for range 3 {
					calls = append(calls, e.acquireNow(locks))
				}
			}
			e.longer(before+processes-1, e.lineUpFor(), nil)
			var wg sync.WaitGroup
			for _, c := range calls {
				wg.Go(c.cancel)
			}
			wg.Go(func() { e.noErrorHere(x.Release(e.Context())) })
			wg.Wait()
			for _, c := range calls {
				<-c.over
				switch {
				case c.err == nil:
					e.noError(c.lease.Release(e.Context()))
				case !errors.Is(c.err, context.Canceled):
					e.Errorf("cancelled: %v", c.err)
				}
			}
			e.acquireNow(e.locker(e.Driver())).release(driver.Recheck(e.longTTL())/2, "the next acquire")
		}
		e.nothingLeft()
	})},
	{name: "EachLostNotificationCostsNoMoreThanARecheck", run: waiting(func(e *env) {
		x := e.held()
		var calls []*acquire
		for range 4 {
			q, _ := e.Driver().(queuer)
			defer e.closeIdle(q)
			calls = append(calls, e.acquire(e.locker(deaf{q, q})))
		}
		e.noError(x.Release(e.Context()))
		for i, c := range calls {
			c.release(driver.Recheck(e.longTTL()), fmt.Sprintf("process %d", i))
		}
		e.nothingLeft()
	})},
	{name: "WhoGetsNoNewConnectionIsServedInItsTurn", run: waiting(func(e *env) {
		if e.Through == nil {
			e.lacks("the harness has no network to break")
		}
		var err error
		for range 3 {
			var cutOff bool
			if cutOff, err = servedOverOldConnections(e); err == nil || !cutOff {
				break // else an answer was too late for its bound, which costs the connection, and the process has none left
			}
		}
		if err != nil {
			e.Errorf("beside a busy process: %v", err)
		}
	})},
	{name: "AForeignValueInFrontOfALineIsWaitedFor", other: true, run: waiting(func(e *env) {
		if e.Stepwise {
			e.lacks("those who wait may get the name before it is overwritten")
		}
		x := e.held()
		calls := []*acquire{e.acquire(e.locker(e.Driver())), e.acquire(e.locker(e.Driver()))}
		e.Overwrite("name")
		if err := x.Release(e.Context()); !errors.Is(err, core.ErrLost) {
			e.Errorf("release of what was overwritten: %v", err)
		}
		time.Sleep(e.ttl)
		for _, c := range calls {
			if c.ended() {
				e.Fatalf("the foreign value was overwritten: %v", c.err)
			}
		}
		_, err := e.locker(e.Driver()).TryAcquire(e.Context(), "name")
		e.isHeld(err)
		e.Delete("name")
		calls[0].release(2*time.Second, "the first in line")
		calls[1].release(2*time.Second, "the second in line")
		e.nothingLeft()
	})},
	{name: "ManyShortWaitsLeaveNothingBehind", crowd: true, run: waiting(shortWaits)},
}

// servedOverOldConnections has a process that gets no new connections take its turn beside a busy one. With an error it
// says whether the process has lost the connection that it had.
func servedOverOldConnections(e *env) (cutOff bool, err error) {
	d, proxies := e.Through()
	locks, busy := e.locker(d), e.locker(e.Driver())
	do := func(ctx context.Context, locks *core.Locker, name string, work time.Duration) error {
		return locks.Do(ctx, name, func(context.Context) error { time.Sleep(work); return nil }, core.WithTTL(time.Minute))
	}
	e.noError(do(e.Context(), locks, "name", 0)) // it is connected, and has never waited
	for _, p := range proxies {
		p.BlackHoleNew(true)
	}
	ctx, cancel := context.WithCancel(e.Context())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				_ = do(ctx, busy, "name", time.Millisecond) // until the case ends
			}
		})
	}
	patience, stop := context.WithTimeout(e.Context(), 4*e.longTTL())
	defer stop()
	for range 3 {
		time.Sleep(e.ttl / 100)
		if err = do(patience, locks, "name", 0); err != nil {
			break
		}
	}
	cancel()
	wg.Wait()
	if err != nil {
		free, stop := context.WithTimeout(e.Context(), e.longTTL())
		defer stop()
		cutOff = do(free, locks, "another name", 0) != nil
	}
	for _, p := range proxies {
		p.Heal()
	}
	return cutOff, err
}

// shortWaits has several processes give up waiting again and again.
func shortWaits(e *env) {
	const names, processes, goroutines = 20, 3, 20
	rounds := 2000 / (processes * goroutines)
	switch {
	case e.virtual:
		rounds *= 5
	case e.harness.uneven: // each call takes longer
		rounds /= 4
	}
	holder := e.locker(e.Driver())
	var held []*core.Lease
	for i := range names {
		x, err := holder.TryAcquire(e.Context(), fmt.Sprint("name-", i), core.WithTTL(time.Minute)) // it outlasts a machine that is busy
		e.noError(err)
		held = append(held, x)
	}
	var wg sync.WaitGroup
	var unanswered atomic.Int64 // by a database with one writer on a machine that is busy; these leave nothing behind, either
	for range processes {
		locks := e.locker(e.Driver())
		for g := range goroutines {
			wg.Go(func() {
				for i := range rounds {
					wait := core.WithWait(time.Duration(1+i%5) * time.Millisecond)
					_, err := locks.Acquire(e.Context(), fmt.Sprint("name-", (g+i)%names), wait, core.WithTTL(e.longTTL()))
					if errors.Is(err, core.ErrUnavailable) {
						unanswered.Add(1)
						continue
					}
					e.isHeld(err)
				}
			})
		}
	}
	wg.Wait()
	if n := unanswered.Load(); n > int64(processes*goroutines*rounds/20) {
		e.Errorf("%d calls were not answered", n)
	}
	for _, x := range held {
		e.noError(x.Release(e.Context()))
	}
	next := e.locker(e.Driver())
	e.within(driver.Recheck(e.longTTL())/2, "taking all names", func() {
		for i := range names {
			x, err := next.Acquire(e.Context(), fmt.Sprint("name-", i))
			e.noError(err)
			e.noError(x.Release(e.Context()))
		}
	})
	e.nothingLeft()
}

// deaf is a backend none of whose notifications arrive.
type deaf struct {
	driver.Driver
	queuer driver.Queuer
}

func (d deaf) Wait(ctx context.Context, c driver.Claim) error {
	_ = d.queuer.Wait(ctx, c) // to be in the queue
	<-ctx.Done()
	return ctx.Err()
}

func waiting(run func(e *env)) func(*env) {
	return func(e *env) {
		if _, ok := e.probe.(queuer); !ok {
			e.lacks("no line")
		}
		run(e)
	}
}

func (e *env) closeIdle(q queuer) {
	if c, ok := q.(driver.IdleCloser); ok {
		e.noErrorHere(c.CloseIdle(e.Context()))
	}
}

// held is a lease of "name" by one more process.
func (e *env) held() *core.Lease {
	e.Helper()
	x, err := e.locker(e.Driver()).Acquire(e.Context(), "name", core.WithTTL(e.longTTL()))
	e.noError(err)
	return x
}

func (e *env) isHeld(err error) {
	if !errors.Is(err, core.ErrHeld) {
		e.Errorf("not held: %v", err)
	}
}

// acquire is an Acquire of "name" on a goroutine of its own.
type acquire struct {
	*env
	cancel context.CancelFunc
	over   chan struct{}
	lease  *core.Lease
	err    error
}

// acquireNow begins an acquire.
func (e *env) acquireNow(locks *core.Locker) *acquire {
	ctx, cancel := context.WithCancel(e.Context())
	c := &acquire{env: e, cancel: cancel, over: make(chan struct{})}
	go func() {
		defer close(c.over)
		defer cancel()
		c.lease, c.err = locks.Acquire(ctx, "name", core.WithTTL(e.longTTL()))
	}()
	return c
}

func (c *acquire) ended() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// within waits for the lease, and fails the case if that takes longer than d.
func (c *acquire) within(d time.Duration, what string) *core.Lease {
	c.Helper()
	c.env.within(d, what, func() {
		select {
		case <-c.over:
		case <-time.After(d + time.Minute): // it would wait for ever if another one has come before it
			c.Fatalf("%s still waits", what)
		}
	})
	c.noError(c.err)
	return c.lease
}

func (c *acquire) release(d time.Duration, what string) {
	c.Helper()
	c.noError(c.within(d, what).Release(c.Context()))
}

// nothingLeft waits until the service keeps nothing of what the case did. If that cannot be seen, it
// returns at once.
func (e *env) nothingLeft() {
	e.Helper()
	if e.Leftovers == nil {
		return
	}
	var left []string
	for range 2000 {
		if left = e.Leftovers(); len(left) == 0 {
			return
		}
		time.Sleep(e.ttl / 100)
	}
	slices.Sort(left)
	e.Errorf("left behind: %q", left)
}
