package core_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
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
		virtual(t, func(b *bench) {
			asked := time.Now()
			x, err := b.locks.TryAcquire(b.Context(), "name", opts...)
			if errors.Is(err, core.ErrInvalid) {
				return
			}
			b.ok(err)
			if until := x.ValidUntil(); until.Sub(asked) >= time.Duration(ttl) {
				b.Errorf("TTL %v: valid for %v", time.Duration(ttl), until.Sub(asked))
			}
			b.ok(x.Release(b.Context()))
		})
	})
}

// FuzzTextOptions has any texts in options: they are refused by name, or they come back as they
// are, and no two scopes are taken for one.
func FuzzTextOptions(f *testing.F) {
	f.Add("worker-1", "ship", "order:{id}", "bill")
	f.Add("", "", "", "x")
	f.Add("\x00", "\xff", "\n", "\ufffd")
	f.Fuzz(func(t *testing.T, label, scope, template, otherScope string) {
		virtual(t, func(b *bench) {
			mine, err := b.locks.With(core.WithLabel(label), core.WithDedupScope(scope), core.WithTemplate(template))
			if err != nil {
				b.readablyInvalid(err)
				return
			}
			x := b.acquire(mine, "name")
			if held := b.refused(b.locks, "name"); held.Label != label {
				b.Errorf("label %q: %v", label, held)
			}
			b.ok(x.Complete(b.Context()))
			y, err := b.locks.TryAcquire(b.Context(), "name", core.WithDedupScope(otherScope))
			switch done := errors.Is(err, core.ErrDuplicate); {
			case errors.Is(err, core.ErrInvalid):
				b.readablyInvalid(err)
			case done != (scope == otherScope):
				b.Errorf("done in scope %q, and in %q: %v", scope, otherScope, err)
			case !done:
				b.ok(y.Release(b.Context()))
			}
		}, core.WithDedup(time.Hour))
	})
}

// readablyInvalid: what is wrong with an option goes to a log, whatever was in it.
func (b *bench) readablyInvalid(err error) {
	b.Helper()
	text := err.Error()
	if !errors.Is(err, core.ErrInvalid) || len(text) > 500 || strings.ContainsFunc(text, unicode.IsControl) || !utf8.ValidString(text) {
		b.Errorf("%.600q", text)
	}
}
