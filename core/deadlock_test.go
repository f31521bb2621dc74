package core_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// crossed has two calls take two names in opposite order, and returns what they got. The second one
// closes the circle.
func crossed(b *bench, opts ...[2][]core.Option) (first, second error) {
	var of [2][]core.Option
	if len(opts) > 0 {
		of = opts[0]
	}
	var wg sync.WaitGroup
	nothing := func(context.Context) error { return nil }
	wg.Go(func() {
		first = b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
			time.Sleep(time.Second)
			return b.locks.Do(ctx, "b", nothing, of[0]...)
		}, core.WithLabel("one"))
	})
	wg.Go(func() {
		second = b.locks.Do(b.Context(), "b", func(ctx context.Context) error {
			time.Sleep(2 * time.Second)
			return b.locks.Do(ctx, "a", nothing, of[1]...)
		}, core.WithLabel("two"))
	})
	wg.Wait()
	return first, second
}

func TestACircleIsToldAtOnceToTheCallThatClosesIt(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var first, second error
		b.took(2*time.Second, time.Millisecond, func() { first, second = crossed(b) })
		b.ok(first)
		b.is(second, core.ErrDeadlock)
		b.isNot(second, core.ErrHeld, core.ErrUnavailable, context.Canceled)
		dead, ok := errors.AsType[*core.DeadlockError](second)
		if !ok || len(dead.Circle) != 2 {
			b.Fatalf("%v", second)
		}
		if c := dead.Circle[0]; c.Holds != "b" || c.WaitsFor != "a" {
			b.Errorf("the closer %+v", c)
		}
		if c := dead.Circle[1]; c.Holds != "a" || c.WaitsFor != "b" {
			b.Errorf("the other one %+v", c)
		}
		for _, part := range []string{`holds "a" and waits for "b"`, `holds "b" and waits for "a"`} {
			if !strings.Contains(second.Error(), part) {
				b.Errorf("%q does not say %s", second, part)
			}
		}
		if core.KindOf(second) != core.KindDeadlock {
			b.Errorf("kind %d", core.KindOf(second))
		}
	})
}

func TestTheLogHasBothOrdersOfADeadlockOnce(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	virtual(t, func(b *bench) {
		of := [2][]core.Option{{core.WithTemplate("b:{id}")}, {core.WithTemplate("a:{id}")}}
		for range 3 {
			_, second := crossed(b, of)
			b.is(second, core.ErrDeadlock)
		}
		b.ok(b.locks.Close(b.Context()))
	}, core.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	if n := strings.Count(logged.String(), "holdfast: deadlock"); n != 1 {
		t.Errorf("%d lines:\n%s", n, &logged)
	}
	if want := `orders="(no template) then a:{id}; (no template) then b:{id}"`; !strings.Contains(logged.String(), want) {
		t.Errorf("no %s in\n%s", want, &logged)
	}
}

func TestOfACircleThatWouldEndByItselfTheCallThatGivesUpFirstIsTold(t *testing.T) {
	t.Parallel()
	five := []core.Option{core.WithWait(5 * time.Second)}
	hour := []core.Option{core.WithWait(time.Hour)}
	for what, of := range map[string][2][]core.Option{"one of them waits for ever": {five, nil}, "both give up": {five, hour}} {
		virtual(t, func(b *bench) {
			var first, second error
			b.took(2*time.Second, time.Millisecond, func() { first, second = crossed(b, of) })
			b.is(first, core.ErrDeadlock)
			if second != nil {
				b.Errorf("%s: the other one: %v", what, second)
			}
		})
	}
}

func TestALeaseThatEndsByItselfCountsAsTheEndOfAWait(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var first, second error
		var wg sync.WaitGroup
		wg.Go(func() {
			first = b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
				time.Sleep(time.Second)
				return b.locks.Do(ctx, "b", func(context.Context) error { return nil })
			}, core.WithMaxHold(time.Minute))
		})
		wg.Go(func() {
			second = b.locks.Do(b.Context(), "b", func(ctx context.Context) error {
				time.Sleep(2 * time.Second)
				return b.locks.Do(ctx, "a", func(context.Context) error { return nil })
			})
		})
		wg.Wait()
		b.is(first, core.ErrDeadlock)
		b.ok(second)
	})
}

func TestACircleOfThreeIsFound(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		names := []string{"a", "b", "c"}
		errs := make([]error, 3)
		var wg sync.WaitGroup
		for i := range names {
			wg.Go(func() {
				errs[i] = b.locks.Do(b.Context(), names[i], func(ctx context.Context) error {
					time.Sleep(time.Duration(i+1) * time.Second)
					return b.locks.Do(ctx, names[(i+1)%3], func(context.Context) error { return nil })
				})
			})
		}
		wg.Wait()
		b.ok(errs[0])
		b.ok(errs[1])
		dead, ok := errors.AsType[*core.DeadlockError](errs[2])
		if !ok || len(dead.Circle) != 3 {
			b.Errorf("%v", errs[2])
		}
	})
}

func TestWithoutReentryACallThatWaitsForItsOwnLeaseIsTold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.is(b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
			return b.locks.Do(ctx, "a", func(context.Context) error { return nil }, core.WithoutReentry())
		}), core.ErrDeadlock)
	})
}

func TestSiblingsThatWaitForOneAnotherAreTold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var first, second error
		b.ok(b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
			var wg sync.WaitGroup
			wg.Go(func() {
				first = b.locks.Do(ctx, "a", func(ctx context.Context) error {
					time.Sleep(time.Second)
					return b.locks.Do(ctx, "b", func(context.Context) error { return nil })
				})
			})
			wg.Go(func() {
				second = b.locks.Do(ctx, "b", func(ctx context.Context) error {
					time.Sleep(2 * time.Second)
					return b.locks.Do(ctx, "a", func(context.Context) error { return nil })
				})
			})
			wg.Wait()
			return nil
		}))
		b.ok(first)
		b.is(second, core.ErrDeadlock)
	})
}

func TestAHolderThatCanGoOnIsNoDeadlock(t *testing.T) {
	t.Parallel()
	shared, two := core.WithShared(), core.WithLimit(2)
	for what, opts := range map[string][]core.Option{"a reader beside it": {shared}, "a permit beside it": {two}} {
		virtual(t, func(b *bench) {
			// Of two holders of "a", one waits for "b", and the other one goes on for a while.
			var wg sync.WaitGroup
			wg.Go(func() {
				b.ok(b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
					time.Sleep(time.Second)
					return b.locks.Do(ctx, "b", func(context.Context) error { return nil })
				}, opts...))
			})
			wg.Go(func() {
				b.ok(b.locks.Do(b.Context(), "a", func(context.Context) error { time.Sleep(time.Minute); return nil }, opts...))
			})
			wg.Go(func() {
				b.ok(b.locks.Do(b.Context(), "b", func(ctx context.Context) error {
					time.Sleep(2 * time.Second)
					if err := b.locks.Do(ctx, "a", func(context.Context) error { return nil }, opts...); err != nil {
						b.Errorf("%s: %v", what, err)
					}
					return nil
				}))
			})
			wg.Wait()
		})
	}
}

func TestAWriterInACircleWithOneOfTheReadersIsTold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var wg sync.WaitGroup
		wg.Go(func() {
			b.ok(b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
				time.Sleep(time.Second)
				return b.locks.Do(ctx, "b", func(context.Context) error { return nil })
			}, core.WithShared()))
		})
		wg.Go(func() {
			b.ok(b.locks.Do(b.Context(), "a", func(context.Context) error { time.Sleep(time.Minute); return nil }, core.WithShared()))
		})
		wg.Go(func() {
			b.is(b.locks.Do(b.Context(), "b", func(ctx context.Context) error {
				time.Sleep(2 * time.Second)
				return b.locks.Do(ctx, "a", func(context.Context) error { return nil })
			}), core.ErrDeadlock)
		})
		wg.Wait()
	})
}

func TestASemaphoreIsADeadlockOnceAllItsHoldersWait(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		two := core.WithLimit(2)
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				b.ok(b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
					time.Sleep(time.Duration(i+1) * time.Second)
					return b.locks.Do(ctx, "b", func(context.Context) error { return nil })
				}, two))
			})
		}
		wg.Go(func() {
			b.is(b.locks.Do(b.Context(), "b", func(ctx context.Context) error {
				time.Sleep(5 * time.Second)
				return b.locks.Do(ctx, "a", func(context.Context) error { return nil }, two)
			}), core.ErrDeadlock)
		})
		wg.Wait()
	})
}

func TestTheLastHolderOfASemaphoreClosesACircleToo(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		two := core.WithLimit(2)
		var mu sync.Mutex
		var errs []error
		var wg sync.WaitGroup
		nested := func(outer, inner string, after time.Duration, opts, innerOpts []core.Option) {
			wg.Go(func() {
				err := b.locks.Do(b.Context(), outer, func(ctx context.Context) error {
					time.Sleep(after)
					return b.locks.Do(ctx, inner, noWork, innerOpts...)
				}, opts...)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs = append(errs, err)
				}
			})
		}
		limited := []core.Option{two}
		nested("b", "a", time.Second, nil, limited) // waits for a permit
		nested("a", "b", 2*time.Second, limited, nil)
		nested("a", "b", 3*time.Second, limited, nil) // only now no permit comes free any more
		b.took(3*time.Second, time.Millisecond, wg.Wait)
		if len(errs) != 1 {
			b.Fatalf("%v", errs)
		}
		b.is(errs[0], core.ErrDeadlock)
	})
}

func TestWhatRunsApartFromALeaseDoesNotKeepIt(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var apart sync.WaitGroup
		var wg sync.WaitGroup
		wg.Go(func() {
			b.ok(b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
				apart.Go(func() {
					b.ok(b.locks.Do(context.WithoutCancel(ctx), "b", func(context.Context) error { return nil }))
				})
				time.Sleep(time.Minute)
				return nil
			}))
		})
		wg.Go(func() {
			b.ok(b.locks.Do(b.Context(), "b", func(ctx context.Context) error {
				time.Sleep(2 * time.Second)
				return b.locks.Do(ctx, "a", func(context.Context) error { return nil })
			}))
		})
		wg.Wait()
		apart.Wait()
	})
}

func TestACallThatHasLeftIsInNoCircle(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var wg sync.WaitGroup
		left := make(chan struct{})
		wg.Go(func() {
			b.ok(b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
				time.Sleep(time.Millisecond) // the other one has "b" by now
				waits, leave := context.WithCancel(ctx)
				time.AfterFunc(time.Second, leave)
				b.is(b.locks.Do(waits, "b", func(context.Context) error { return nil }), context.Canceled)
				close(left)
				time.Sleep(time.Minute)
				return nil
			}))
		})
		wg.Go(func() {
			b.ok(b.locks.Do(b.Context(), "b", func(ctx context.Context) error {
				<-left
				return b.locks.Do(ctx, "a", func(context.Context) error { return nil })
			}))
		})
		wg.Wait()
	})
}

func TestSeveralCirclesAtOnceAreAllBroken(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		// Two calls wait for "b" under one lease of "a". The third one closes a circle with each.
		var wg sync.WaitGroup
		var mu sync.Mutex
		dead := 0
		count := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, core.ErrDeadlock) {
				dead++
			}
		}
		wg.Go(func() {
			b.ok(b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
				time.Sleep(time.Second)
				var inner sync.WaitGroup
				for range 2 {
					inner.Go(func() {
						count(b.locks.Do(ctx, "b", func(context.Context) error { return nil }, core.WithWait(time.Minute)))
					})
				}
				inner.Wait()
				return nil
			}))
		})
		wg.Go(func() {
			b.ok(b.locks.Do(b.Context(), "b", func(ctx context.Context) error {
				time.Sleep(2 * time.Second)
				return b.locks.Do(ctx, "a", func(context.Context) error { return nil })
			}))
		})
		wg.Wait()
		synctest.Wait()
		if dead != 2 {
			b.Errorf("%d were told", dead)
		}
	})
}

func TestAcquireAllInsideACircleGivesBackWhatItHas(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var wg sync.WaitGroup
		wg.Go(func() { // takes "b" and then "a"
			b.ok(b.locks.Do(b.Context(), "b", func(ctx context.Context) error {
				time.Sleep(2 * time.Second)
				return b.locks.Do(ctx, "a", func(context.Context) error { return nil })
			}))
		})
		wg.Go(func() {
			time.Sleep(time.Second)
			b.is(b.locks.DoAll(b.Context(), []string{"a", "b"}, func(context.Context) error { return nil }, core.WithWait(time.Hour)),
				core.ErrDeadlock)
		})
		wg.Wait()
	})
}
