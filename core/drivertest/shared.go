package drivertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

func shares(can driver.Capabilities) bool { return can.Shared }

func (e *env) reader(name string) driver.Claim {
	c := e.writer(name)
	c.Shared = true
	return c
}

// writer makes a claim that outlasts the case.
func (e *env) writer(name string) driver.Claim {
	c := e.claim(name)
	c.TTL = time.Minute
	return c
}

// brief is c for one TTL of the case.
func (e *env) brief(c driver.Claim) driver.Claim {
	c.TTL = e.ttl
	return c
}

// refused fails the case unless c is refused.
func (e *env) refused(d driver.Driver, c driver.Claim, why string) {
	e.Helper()
	_ = e.refusal(d, c, why)
}

// refusal returns the error that refuses c.
func (e *env) refusal(d driver.Driver, c driver.Claim, why string) *driver.Held {
	e.Helper()
	_, err := d.Acquire(e.Context(), c)
	held, ok := errors.AsType[*driver.Held](err)
	if !ok {
		e.Fatalf("%s: %v", why, err)
	}
	return held
}

// readersWait has three readers wait in the queue until each of them has the name. It returns once they are there.
func (e *env) readersWait(q driver.Queuer) *sync.WaitGroup {
	const n = 3
	var all sync.WaitGroup
	before := e.queueLength()
	for range n {
		c := e.reader("name")
		c.Place = token()
		all.Go(func() {
			for { // a nil is a hint
				if err := q.Wait(e.Context(), c); err != nil {
					e.Error(err)
					return
				}
				if _, err := q.(driver.Driver).Acquire(e.Context(), c); err == nil {
					return // and never releases
				}
			}
		})
	}
	e.longer(before+n-1, e.lineUpFor(), nil)
	return &all
}

// sharedCases test readers and writers.
var sharedCases = []testCase{
	{name: "ReadersUnderCoreMeetNoWriter", crowd: true, needs: shares, run: func(e *env) {
		lockers := []*core.Locker{e.locker(e.Driver()), e.locker(e.Driver())}
		var wg sync.WaitGroup
		var readers, writers, together atomic.Int32
		for i := range 12 {
			wg.Go(func() {
				for range 8 {
					write := func(context.Context) error {
						if writers.Add(1) != 1 || readers.Load() != 0 {
							e.Error("a writer is not alone")
						}
						time.Sleep(time.Millisecond)
						writers.Add(-1)
						return nil
					}
					read := func(context.Context) error {
						if n := readers.Add(1); n > together.Load() {
							together.Store(n)
						}
						if writers.Load() != 0 {
							e.Error("a reader beside a writer")
						}
						time.Sleep(e.ttl / 40) // long enough to meet, over connections that are slow
						readers.Add(-1)
						return nil
					}
					var err error
					if i%4 == 0 {
						err = lockers[i%2].Do(e.Context(), "name", write)
					} else {
						err = lockers[i%2].Do(e.Context(), "name", read, core.WithShared())
					}
					if err != nil {
						e.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if together.Load() < 2 && !e.harness.uneven { // a slow connection may keep them apart
			e.Error("no two readers have met")
		}
	}},
	{name: "ReadersShareAndWritersDoNot", needs: shares, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		one, two, writer := e.reader("name"), e.reader("name"), e.writer("name")
		one.Label = "one"
		e.grant(a, one)
		e.grant(b, two)
		placed := e.claim("name")
		placed.Place = token()
		for what, c := range map[string]driver.Claim{"a writer": writer, "a writer in line": placed} {
			held := e.refusal(b, c, what+" beside readers")
			if held.Label != "" || held.Exact || held.Remaining <= 0 || held.Remaining > time.Minute {
				e.Errorf("%s: held says %+v", what, held)
			}
		}
		e.noError(a.Release(e.Context(), one))
		e.refused(a, writer, "a writer beside the last reader")
		e.noError(b.Release(e.Context(), two))
		e.grant(a, writer)
		if held := e.refusal(b, e.reader("name"), "a reader beside a writer"); held.Remaining <= 0 {
			e.Errorf("held says %+v", held)
		}
		e.noError(a.Release(e.Context(), writer))
		e.grant(b, e.reader("name"))
	}},
	{name: "ManyClaimsBesideReadersAreRefused", needs: shares, run: func(e *env) {
		d := e.Driver()
		e.grant(d, e.reader("name"))
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				_, err := d.Acquire(e.Context(), e.claim("name"))
				if held, ok := errors.AsType[*driver.Held](err); !ok || held.Label != "" || held.Exact {
					e.Errorf("%v %+v", err, held)
				}
			})
		}
		wg.Wait()
	}},
	{name: "EachReaderHasItsOwnTime", needs: shares, run: func(e *env) {
		d := e.Driver()
		short, long := e.brief(e.reader("name")), e.brief(e.reader("name"))
		long.TTL = 2 * e.ttl
		e.grant(d, long)
		e.grant(d, short) // which does not cut the other's time
		time.Sleep(e.ttl * 12 / 10)
		errs := d.Renew(e.Context(), []driver.Claim{short, long})
		if !errors.Is(errs[0], driver.ErrNotOwner) || errs[1] != nil {
			e.Errorf("renewals: %v", errs)
		}
		if err := d.Release(e.Context(), short); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("release after its time: %v", err)
		}
		e.refused(d, e.claim("name"), "a writer beside the one that lives")
		e.noError(d.Release(e.Context(), long))
		e.grant(d, e.claim("name"))
	}},
	{name: "TheNameIsFreeWhenItsLastReaderDies", needs: shares, run: func(e *env) {
		d := e.Driver()
		short, long := e.brief(e.reader("name")), e.brief(e.reader("name"))
		long.TTL = time.Hour
		e.grant(d, short)
		e.grant(d, long)
		e.noError(d.Release(e.Context(), long)) // an hour is no longer what it takes
		e.within(2*e.ttl, "the end of the one that died", func() {
			e.eventually("the name is free", func() bool { _, err := d.Acquire(e.Context(), e.claim("name")); return err == nil })
		})
	}},
	{name: "AReadersRenewalGivesTheFullTTLAgain", needs: shares, run: func(e *env) {
		d, c := e.Driver(), e.brief(e.reader("name"))
		e.grant(d, c)
		for range 4 {
			time.Sleep(e.ttl / 2)
			e.noError(d.Renew(e.Context(), []driver.Claim{c})[0])
			e.refused(d, e.claim("name"), "a writer")
		}
		verify := c
		verify.TTL = 0
		e.noError(d.Renew(e.Context(), []driver.Claim{verify})[0])
		e.eventually("it expires under verification", func() bool {
			return errors.Is(d.Renew(e.Context(), []driver.Claim{verify})[0], driver.ErrNotOwner)
		})
		e.eventually("the name is free", func() bool { _, err := d.Acquire(e.Context(), e.claim("name")); return err == nil })
	}},
	{name: "RenewalsOfAllKindsAreAnsweredEachForItself", needs: shares, run: func(e *env) {
		d := e.Driver()
		reader, writer, gone := e.reader("read"), e.writer("written"), e.reader("read")
		e.grant(d, reader)
		e.grant(d, writer)
		forged := e.claim("written")
		errs := d.Renew(e.Context(), []driver.Claim{gone, writer, forged, reader, writer, reader})
		for i, want := range []error{driver.ErrNotOwner, nil, driver.ErrNotOwner, nil, nil, nil} {
			if !errors.Is(errs[i], want) {
				e.Errorf("claim %d: %v, not %v", i, errs[i], want)
			}
		}
	}},
	{name: "AReadersAcquireIsIdempotentPerToken", needs: shares, run: func(e *env) {
		d, c := e.Driver(), e.brief(e.reader("name"))
		first := e.grant(d, c)
		time.Sleep(e.ttl / 2)
		if again := e.grant(d, c); again.Fence < first.Fence {
			e.Errorf("fence %d after %d", again.Fence, first.Fence)
		}
		time.Sleep(e.ttl * 6 / 10)
		e.noError(d.Renew(e.Context(), []driver.Claim{c})[0])
		e.noError(d.Release(e.Context(), c)) // once is enough
		e.grant(d, e.claim("name"))
	}},
	{name: "AReadersFenceIsNotOlderThanTheLastWriter", needs: func(can driver.Capabilities) bool { return can.Shared && can.Fence }, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		var last uint64
		for range 20 {
			writer := e.writer("name")
			if f := e.grant(a, writer).Fence; f <= last {
				e.Errorf("writer: fence %d after %d", f, last)
			} else {
				last = f
			}
			e.noError(a.Release(e.Context(), writer))
			one, two := e.reader("name"), e.reader("name")
			f, g := e.grant(a, one).Fence, e.grant(b, two).Fence
			if f <= last || g <= last || f > 1<<53 || g > 1<<53 {
				e.Errorf("readers: fences %d and %d after a writer's %d", f, g, last)
			}
			last = max(f, g)
			e.noError(a.Release(e.Context(), one))
			e.noError(b.Release(e.Context(), two))
		}
	}},
	{name: "ReadersDoNotStarveAWriterThatWaits", needs: shares, run: queued(func(e *env, q driver.Queuer, d driver.Driver) {
		one, writer, late := e.reader("name"), e.writer("name"), e.reader("name")
		writer.Place, late.Place = token(), token()
		e.grant(d, one)
		told := make(chan error, 2)
		go func() { told <- q.Wait(e.Context(), writer) }()
		e.eventually("the writer stands in line", func() bool {
			other := e.reader("name")
			_, err := d.Acquire(e.Context(), other)
			return err != nil || d.Release(e.Context(), other) != nil
		})
		e.refused(d, late, "a reader after a writer that waits")
		go func() { told <- q.Wait(e.Context(), late) }()
		time.Sleep(e.ttl / 10)
		e.noError(d.Release(e.Context(), one))
		e.within(time.Second, "the writer hears of it", func() { e.noError(<-told) })
		e.refused(d, late, "a reader before the writer has come")
		e.grant(q.(driver.Driver), writer)
		e.noError(d.Release(e.Context(), writer))
		e.within(time.Second, "the reader hears of it", func() { e.noError(<-told) })
		e.grant(q.(driver.Driver), late)
	})},
	{name: "ReadersThatWaitComeInTogether", needs: shares, run: queued(func(e *env, q driver.Queuer, d driver.Driver) {
		writer := e.writer("name")
		e.grant(d, writer)
		all := e.readersWait(q)
		e.noError(d.Release(e.Context(), writer))
		e.within(2*time.Second, "all readers", all.Wait)
	})},
	{name: "OnlyAReaderReleasesItself", needs: shares, run: func(e *env) {
		d, c := e.Driver(), e.reader("name")
		e.grant(d, c)
		for _, forged := range []driver.Claim{e.reader("name"), e.claim("name")} {
			if err := d.Release(e.Context(), forged); !errors.Is(err, driver.ErrNotOwner) {
				e.Errorf("release: %v", err)
			}
			if err := d.Renew(e.Context(), []driver.Claim{forged})[0]; !errors.Is(err, driver.ErrNotOwner) {
				e.Errorf("renewal: %v", err)
			}
		}
		e.noError(d.Renew(e.Context(), []driver.Claim{c})[0])
		e.noError(d.Release(e.Context(), c))
		if err := d.Release(e.Context(), c); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("another release: %v", err)
		}
	}},
	{name: "AForeignValueStopsReaders", needs: shares, other: true, run: func(e *env) {
		d, c := e.Driver(), e.reader("name")
		e.Overwrite("name")
		e.refused(d, c, "a reader beside other software")
		e.Delete("name")
		e.grant(d, c)
		e.Overwrite("name")
		if err := d.Renew(e.Context(), []driver.Claim{c})[0]; !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("renewal: %v", err)
		}
		if err := d.Release(e.Context(), c); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("release: %v", err)
		}
		e.refused(d, e.reader("name"), "the foreign value is gone")
		e.Delete("name")
		e.grant(d, e.reader("name"))
		if err := d.Renew(e.Context(), []driver.Claim{c})[0]; !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("renewal of one whose name had been taken: %v", err)
		}
	}},
	{name: "AReaderCompletes", needs: func(can driver.Capabilities) bool { return can.Shared && can.Dedup }, run: func(e *env) {
		d, c := e.Driver(), dedupClaim(e, "name", "pay", time.Hour)
		c.Shared = true
		e.grant(d, c)
		c.Mark = true
		e.noError(d.Release(e.Context(), c))
		for _, shared := range []bool{true, false} {
			again := dedupClaim(e, "name", "pay", time.Hour)
			again.Shared = shared
			_, err := d.Acquire(e.Context(), again)
			if done, ok := errors.AsType[*driver.Duplicate](err); !ok || done.Label != "who" {
				e.Errorf("shared %v: %v", shared, err)
			}
		}
	}},
}
