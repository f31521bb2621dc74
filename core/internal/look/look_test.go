package look

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func TestAFilterIsAPatternOrABeginning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		filter Filter
		prefix string
		keeps  []string
		drops  []string
	}{
		{nil, "", []string{"", "a"}, nil},
		{Filter{"order:"}, "order:", []string{"order:", "order:1"}, []string{"order", "x"}},
		{Filter{"order:*:x"}, "order:", []string{"order:1:x", "order::x", "order:x:x"}, []string{"order:x", "order:1:xy"}},
		{Filter{"a?"}, "a", []string{"ab"}, []string{"xab", "abc"}},
		{Filter{"?é*"}, "", []string{"aé", "éé1"}, []string{"é", "a"}},
		{Filter{"order:", "ordinal*1"}, "ord", []string{"order:", "ordinal1"}, []string{"ord", "ordinal"}},
		{Filter{"é", "è"}, "", []string{"é", "è"}, []string{"e"}}, // the first byte alone would be no text
		{Filter{"*a*a*a*a*b"}, "", []string{"aaaab", "xaaaab"}, []string{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}},
	} {
		if got := c.filter.Prefix(); got != c.prefix {
			t.Errorf("%q: prefix %q", c.filter, got)
		}
		for _, name := range c.keeps {
			if !c.filter.Keep(name) {
				t.Errorf("%q does not keep %q", c.filter, name)
			}
		}
		for _, name := range c.drops {
			if c.filter.Keep(name) {
				t.Errorf("%q keeps %q", c.filter, name)
			}
		}
	}
}

// slow is a lock service with many keys.
type slow struct {
	names          int
	each           time.Duration
	walks, singles atomic.Int32
	err, walkErr   error
	free           string      // a name that nobody holds any more
	frozen         atomic.Bool // it does not answer
}

func (s *slow) answer(ctx context.Context) error {
	if !s.frozen.Load() {
		return s.err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (s *slow) Inspect(ctx context.Context, name string) (inspect.LeaseInfo, error) {
	s.singles.Add(1)
	return inspect.LeaseInfo{Name: name, Held: name != s.free}, s.answer(ctx)
}

func (s *slow) Leases(ctx context.Context, _ string) iter.Seq2[inspect.LeaseInfo, error] {
	return func(yield func(inspect.LeaseInfo, error) bool) {
		s.walks.Add(1)
		if err := s.answer(ctx); err != nil {
			yield(inspect.LeaseInfo{}, err)
			return
		}
		for i := range s.names {
			time.Sleep(s.each)
			if !yield(inspect.LeaseInfo{Name: fmt.Sprint("n", i), Held: true}, nil) {
				return
			}
		}
		if s.walkErr != nil {
			yield(inspect.LeaseInfo{}, s.walkErr)
		}
	}
}

// looking has a Looker of s in virtual time.
func looking(t *testing.T, s *slow, f Filter, test func(t *testing.T, l *Looker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := New(s, "", f.Keep)
		test(t, l)
		l.Close()
	})
}

// watch looks each second for a while.
func watch(ctx context.Context, t *testing.T, l *Looker, d time.Duration) (last Picture) {
	t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < d; <-tick.C {
		p, err := l.Look(ctx)
		if err != nil {
			t.Fatal(err)
		}
		last = p
	}
	return last
}

func TestASmallServiceIsWalkedThroughAtEachLook(t *testing.T) {
	t.Parallel()
	s := &slow{names: 20, each: time.Millisecond}
	looking(t, s, Filter{"n1"}, func(t *testing.T, l *Looker) {
		ctx := &lab.Followed{Context: t.Context()}
		if p := watch(ctx, t, l, time.Minute); len(p.Infos) != 11 || !p.Whole || ctx.Followers() > 0 {
			t.Errorf("%+v, and the context of the looks keeps %d", p, ctx.Followers())
		}
		if w, n := s.walks.Load(), s.singles.Load(); w < 59 || n > 0 {
			t.Errorf("%d walks, %d single looks", w, n)
		}
	})
}

func TestBetweenWalksANameThatIsLetGoIsNotShown(t *testing.T) {
	t.Parallel()
	s := &slow{names: 3, each: time.Second}
	looking(t, s, nil, func(t *testing.T, l *Looker) {
		if p := watch(t.Context(), t, l, 10*time.Second); len(p.Infos) != 3 {
			t.Errorf("%+v", p)
		}
		s.free = "n1"
		if p := watch(t.Context(), t, l, time.Second); len(p.Infos) != 2 || p.Infos[1].Name != "n2" || s.walks.Load() != 1 {
			t.Errorf("%+v after %d walks", p, s.walks.Load())
		}
		s.err = errors.New("gone")
		for range 2 { // a look at single names, and a walk
			if p, err := l.Look(t.Context()); !errors.Is(err, s.err) || len(p.Infos) != 2 {
				t.Errorf("%+v, %v after %d walks", p, err, s.walks.Load())
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestWalksTakeATwentiethOfTheTimeAtMost(t *testing.T) {
	t.Parallel()
	s := &slow{names: 5, each: time.Second} // a walk of 5 s
	looking(t, s, Filter{"n"}, func(t *testing.T, l *Looker) {
		if p := watch(t.Context(), t, l, 3*time.Second); p.Whole || len(p.Infos) == 0 || len(p.Infos) == 5 || p.Infos[0].Name == probe {
			t.Errorf("while the first walk is under way: %+v", p)
		}
		p := watch(t.Context(), t, l, 1000*time.Second)
		if w := s.walks.Load(); w < 9 || w > 11 {
			t.Errorf("%d walks of 5 s in 1000 s", w)
		}
		if n := s.singles.Load(); len(p.Infos) != 5 || n < 4*900 {
			t.Errorf("%+v, %d single looks", p, n)
		}
	})
}

func TestTheNextWalkDoesNotWaitForTimeInWhichNobodyWalked(t *testing.T) {
	t.Parallel()
	outage := errors.New("an outage")
	for what, row := range map[string]struct {
		s    *slow
		away time.Duration
		err  error
	}{
		"nobody has looked for an hour":     {&slow{names: 1, each: time.Second}, time.Hour, nil},
		"the walk hung, and ended in error": {&slow{names: 1, each: 10 * time.Minute, walkErr: outage}, 10 * time.Minute, outage},
	} {
		looking(t, row.s, nil, func(t *testing.T, l *Looker) {
			if _, err := l.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(row.away)
			if p, err := l.Look(t.Context()); p.Every > share*time.Second || !errors.Is(err, row.err) {
				t.Errorf("%s: a walk every %s, %v", what, p.Every, err)
			}
		})
	}
}

func TestManyNamesAreLookedAtInTurns(t *testing.T) {
	t.Parallel()
	s := &slow{names: 3 * mostNames, each: time.Millisecond}
	looking(t, s, nil, func(t *testing.T, l *Looker) {
		watch(t.Context(), t, l, 10*time.Second)
		s.free = "n999" // the last one
		for i := range 3 {
			before := s.singles.Load()
			p, err := l.Look(t.Context())
			if n := s.singles.Load() - before; err != nil || n != mostNames || i == 2 && len(p.Infos) == s.names {
				t.Errorf("%d single looks, %d of %d names, %v", n, len(p.Infos), s.names, err)
			}
		}
	})
}

func TestASilentServiceIsAnErrorAndIsLookedAtAgainLater(t *testing.T) {
	t.Parallel()
	s := &slow{}
	looking(t, s, nil, func(t *testing.T, l *Looker) {
		watch(t.Context(), t, l, time.Second) // nothing is known
		s.frozen.Store(true)
		s.names = 3
		time.Sleep(time.Minute)
		began := time.Now()
		if _, err := l.Look(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 6*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		s.frozen.Store(false)
		if p := watch(t.Context(), t, l, 2*time.Second); len(p.Infos) != 3 {
			t.Errorf("%+v", p)
		}
	})
}
