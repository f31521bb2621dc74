package core_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// Callers with little time come all the time. Each of them is called up when its predecessor has
// given up, with less time left than the pause of a successor: then nobody ever asks.
func TestAFreeNameIsHadThoughWaitersGiveUpAllTheTime(t *testing.T) {
	t.Parallel()
	const seconds = 3
	for how, traffic := range map[string]struct {
		burst  int
		every  time.Duration // at random, on average, if there are no bursts
		budget time.Duration
		by     string
	}{
		"bursts with budgets":         {8, 10 * time.Millisecond, 20 * time.Millisecond, "budget"},
		"bursts with deadlines":       {8, 10 * time.Millisecond, 20 * time.Millisecond, "deadline"},
		"100 calls a second, 100 ms":  {1, 10 * time.Millisecond, 100 * time.Millisecond, "budget"},
		"300 calls a second, 100 ms":  {1, 3333 * time.Microsecond, 100 * time.Millisecond, "budget"},
		"1000 calls a second, 100 ms": {1, time.Millisecond, 100 * time.Millisecond, "budget"},
		"1000 calls a second, 1 s":    {1, time.Millisecond, time.Second, "deadline"},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				b.link.Delay(100*time.Microsecond, 100*time.Microsecond)
				holder := b.acquire(b.other(), "name")
				var granted, refused atomic.Int32
				var first, freed atomic.Int64 // since it began
				began := time.Now()
				for freed.Load() == 0 || time.Since(began) < 2*seconds*time.Second {
					for range traffic.burst {
						go func() {
							ctx, opts := b.Context(), []core.Option(nil)
							if traffic.by == "budget" {
								opts = append(opts, core.WithWait(traffic.budget))
							} else {
								var cancel context.CancelFunc
								ctx, cancel = context.WithTimeout(ctx, traffic.budget)
								defer cancel()
							}
							x, err := b.locks.Acquire(ctx, "name", opts...)
							if err != nil {
								refused.Add(1)
								return
							}
							if granted.Add(1) == 1 {
								first.Store(int64(time.Since(began)))
							}
							b.ok(x.Release(context.Background()))
						}()
					}
					pause := traffic.every
					if traffic.burst == 1 {
						pause = time.Duration(rand.ExpFloat64() * float64(pause))
					}
					time.Sleep(pause)
					if freed.Load() == 0 && time.Since(began) > seconds*time.Second {
						b.ok(holder.Release(b.Context()))
						freed.Store(int64(time.Since(began)))
						refused.Store(0)
					}
				}
				free := time.Duration(first.Load() - freed.Load())
				time.Sleep(2 * time.Second)
				switch {
				case granted.Load() == 0:
					b.Errorf("nobody had it in %d s; %d were refused; %d commands asked for it", seconds, refused.Load(), b.link.Calls(lab.OpAcquire))
				case free > 40*time.Millisecond:
					b.Errorf("it was free for %s, and %d were refused meanwhile or since", free, refused.Load())
				default:
					b.Logf("it was free for %s", free)
				}
			})
		})
	}
}

// It is told that the name is held, by what an attempt said seconds ago.
func TestTryAcquireBesideASeriesOfQuitsIsNotToldWhatWasLongAgo(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(100*time.Microsecond, 100*time.Microsecond)
		holder := b.acquire(b.other(), "name")
		for i := range 400 {
			for range 8 {
				go func() {
					x, err := b.locks.Acquire(b.Context(), "name", core.WithWait(20*time.Millisecond))
					if err == nil {
						b.ok(x.Release(context.Background()))
					}
				}()
			}
			if i == 100 {
				b.ok(holder.Release(b.Context()))
			}
			time.Sleep(10 * time.Millisecond)
			if i == 300 { // 2 s after it came free
				if x, err := b.locks.TryAcquire(b.Context(), "name"); err == nil {
					b.ok(x.Release(b.Context()))
				} else if b.link.Calls(lab.OpAcquire) < 20 {
					b.Errorf("%v, 2 s after the name came free", err)
				}
			}
		}
		time.Sleep(time.Second)
	})
}

// One answer was slow. A call that has less time than that took is not asked for at all, though
// nobody has the name, and the answers would be quick.
func TestOneSlowAnswerDoesNotStopCallsWithShortDeadlines(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(45*time.Millisecond, 45*time.Millisecond) // a new connection, or a hiccup
		b.ok(b.acquire(b.locks, "another").Release(b.Context()))
		b.link.Delay(0, 0)
		before := b.link.Calls(lab.OpAcquire)
		for range 5 {
			ctx, cancel := context.WithTimeout(b.Context(), 50*time.Millisecond)
			x, err := b.locks.Acquire(ctx, "name")
			cancel()
			if err != nil {
				b.Errorf("nobody has the name: %v; %d commands", err, b.link.Calls(lab.OpAcquire)-before)
				continue
			}
			b.ok(x.Release(b.Context()))
		}
	})
}

// Its time is over before it could hear anything: who comes after it would only have to clean up.
func TestWhoEndsBeforeAnAnswerCouldComeAsksNothing(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		const trip = 20 * time.Millisecond
		holder := b.acquire(b.other(), "name")
		b.link.Delay(trip/2, trip/2)
		b.ok(b.acquire(b.locks, "another").Release(b.Context()))
		ending := func(d time.Duration) *call {
			ctx, cancel := context.WithTimeout(b.Context(), d)
			context.AfterFunc(ctx, cancel)
			return b.callWith(ctx, b.locks)
		}
		first := ending(200 * time.Millisecond)
		synctest.Wait()
		second := ending(200*time.Millisecond + trip/2)
		time.Sleep(200*time.Millisecond - 1)
		before := b.link.Calls(lab.OpAcquire)
		began := time.Now()
		b.eventually("both have ended", func() bool { return first.ended() && second.ended() })
		if took := time.Since(began); took > trip/2+time.Millisecond {
			b.Errorf("the second has ended after %s", took)
		}
		time.Sleep(trip)
		if n := b.link.Calls(lab.OpAcquire) - before; n != 0 {
			b.Errorf("%d commands of one who has half the time that an answer takes", n)
		}
		b.ok(holder.Release(b.Context()))
	})
}

// farther is a context that says a deadline, and ends by something else.
type farther struct {
	context.Context
	deadline time.Time
}

func (f farther) Deadline() (time.Time, bool) { return f.deadline, true }

// The deadline is over by the clock, as after a step of the wall clock, or where a context says
// one that it does not keep. The call has to return all the same, or to go on.
func TestADeadlineThatIsOverByTheClockEndsTheCall(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
		defer cancel()
		b.took(0, time.Second, func() {
			x, err := b.locks.Acquire(farther{ctx, time.Now().Add(-time.Millisecond)}, "name")
			if err == nil {
				b.ok(x.Release(b.Context()))
			}
		})
	})
}

// After an answer nobody pauses: docs/decisions/006-queues-and-turns.md. TryAcquire was answered.
func TestASuccessorOfOneWhoWasAnsweredAsksAtOnce(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		b.link.Delay(5*time.Millisecond, 5*time.Millisecond)
		go func() {
			b.taken(b.locks, "name")
		}()
		synctest.Wait()
		w := b.call(b.locks)
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if n := b.link.Calls(lab.OpAcquire) + b.link.Calls(lab.OpWait); n != 2 {
			b.Errorf("%d commands: the successor pauses", n)
		}
		b.ok(holder.Release(b.Context()))
		b.eventually("granted", w.ended)
		b.ok(w.granted().Release(b.Context()))
	})
}

// A successor pauses at the head of the backend's line, where it keeps all other processes out.
func TestASeriesOfQuitsDoesNotKeepOtherProcessesOut(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(100*time.Microsecond, 100*time.Microsecond)
		holder := b.acquire(b.other(), "name")
		other := b.other()
		var had atomic.Int64
		began := time.Now()
		for i := range 500 { // 5 s
			for range 8 {
				go func() {
					x, err := b.locks.Acquire(b.Context(), "name", core.WithWait(20*time.Millisecond))
					if err == nil {
						b.ok(x.Release(context.Background()))
					}
				}()
			}
			if i == 50 {
				go func() {
					x, err := other.Acquire(b.Context(), "name")
					b.ok(err)
					had.Store(int64(time.Since(began)))
					b.ok(x.Release(context.Background()))
				}()
			}
			if i == 100 {
				b.ok(holder.Release(b.Context()))
			}
			time.Sleep(10 * time.Millisecond)
		}
		if waited := time.Duration(had.Load()) - time.Second; had.Load() == 0 || waited > 200*time.Millisecond {
			b.Errorf("it had the name %s after that was freed", waited)
		}
		time.Sleep(10 * time.Second)
	})
}

// Close waits for what cleans up, and for no longer than a release takes.
func TestCloseInAnOutageIsOverSoon(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		link := lab.New(b.store)
		locks, err := core.New(link)
		b.ok(err)
		link.All(lab.RequestLost)
		for range 20 {
			ctx, cancel := context.WithTimeout(b.Context(), 50*time.Millisecond)
			_, err := locks.TryAcquire(ctx, "name")
			cancel()
			b.is(err, core.ErrUnavailable)
		}
		b.took(0, bound, func() { b.ok(locks.Close(b.Context())) })
	})
}

func TestBudgetsThatEndWithTheHandOffEndWithHeld(t *testing.T) {
	t.Parallel()
	for range 30 { // who sees what first is left to chance
		virtual(t, func(b *bench) {
			x := b.acquire(b.locks, "name")
			over := make(chan error, 6)
			for range cap(over) {
				go func() {
					y, err := b.locks.Acquire(b.Context(), "name", core.WithWait(3*time.Second)) // more than an attempt takes
					if err == nil {
						err = y.Release(b.Context())
					}
					over <- err
				}()
			}
			time.Sleep(3 * time.Second)
			b.ok(x.Release(b.Context()))
			for range cap(over) {
				if err := <-over; err != nil {
					b.is(err, core.ErrHeld)
				}
			}
		})
	}
}
