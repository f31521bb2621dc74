//go:build next

package core_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	memlock "github.com/holdfast-go/holdfast/core/internal/contract/memory"
	core "github.com/holdfast-go/holdfast/core/internal/next"
)

// FuzzOptions has any numbers in options: they are refused by name, or they make a lease that
// is not trusted for longer than its TTL.
func FuzzOptions(f *testing.F) {
	s := int64(time.Second)
	f.Add(10*s, 3*s, int64(0), int64(0), int64(0), int64(0), 1)
	f.Add(s, int64(0), s, s, s, s, 3)
	f.Add(int64(time.Millisecond), 2*s, int64(math.MaxInt64), int64(-1), int64(1), int64(math.MinInt64), 0)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(0), int64(0), int64(math.MaxInt64), int64(0), math.MinInt)
	f.Fuzz(func(t *testing.T, ttl, renew, wait, maxHold, minHold, dedup int64, limit int) {
		opts := []core.Option{
			core.WithTTL(time.Duration(ttl)), core.WithRenewEvery(time.Duration(renew)), core.WithWait(time.Duration(wait)),
			core.WithMaxHold(time.Duration(maxHold)), core.WithDedup(time.Duration(dedup)), core.WithLimit(limit),
		}
		if limit == 1 {
			opts = append(opts, core.WithMinHold(time.Duration(minHold)))
		}
		synctest.Test(t, func(t *testing.T) { trustedForLessThan(t, time.Duration(ttl), opts) })
	})
}

// trustedForLessThan runs in a bubble, where a call takes no time.
func trustedForLessThan(t *testing.T, ttl time.Duration, opts []core.Option) {
	locks, err := core.New(memlock.New())
	if err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	x, err := locks.TryAcquire(t.Context(), "name", opts...)
	switch {
	case errors.Is(err, core.ErrInvalid):
	case err != nil:
		t.Error(err)
	default:
		if until := x.ValidUntil(); until.Sub(asked) >= ttl {
			t.Errorf("TTL %v: valid for %v", ttl, until.Sub(asked))
		}
		if err := x.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := locks.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// FuzzTextOptions has any texts in options: they are refused by name, or they come back as they
// are, and no two scopes are taken for one.
func FuzzTextOptions(f *testing.F) {
	f.Add("worker-1", "ship", "order:{id}", "bill")
	f.Add("", "", "", "x")
	f.Add("\x00", "\xff", "\n", "\ufffd")
	f.Fuzz(func(t *testing.T, label, scope, template, otherScope string) {
		synctest.Test(t, func(t *testing.T) {
			locks, err := core.New(memlock.New(), core.WithDedup(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := locks.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			mine, err := locks.With(core.WithLabel(label), core.WithDedupScope(scope), core.WithTemplate(template))
			if err != nil {
				readablyInvalid(t, err)
				return
			}
			x, err := mine.TryAcquire(t.Context(), "name")
			if err != nil {
				t.Fatal(err)
			}
			_, err = locks.TryAcquire(t.Context(), "name")
			if held, ok := errors.AsType[*core.HeldError](err); !ok || held.Label != label {
				t.Errorf("label %q: %v", label, err)
			}
			if err := x.Complete(t.Context()); err != nil {
				t.Error(err)
			}
			y, err := locks.TryAcquire(t.Context(), "name", core.WithDedupScope(otherScope))
			switch done := errors.Is(err, core.ErrDuplicate); {
			case errors.Is(err, core.ErrInvalid):
				readablyInvalid(t, err)
			case done != (scope == otherScope):
				t.Errorf("done in scope %q, and in %q: %v", scope, otherScope, err)
			case !done:
				if err := y.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	})
}

// readablyInvalid: what is wrong with an option goes to a log, whatever was in it.
func readablyInvalid(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if !errors.Is(err, core.ErrInvalid) || len(text) > 500 || strings.ContainsFunc(text, unicode.IsControl) || !utf8.ValidString(text) {
		t.Errorf("%.600q", text)
	}
}
