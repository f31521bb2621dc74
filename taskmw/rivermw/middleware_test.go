package rivermw_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/internal/jobtest"
	"github.com/holdfast-go/holdfast/taskmw/rivermw"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func job(args string) *rivertype.JobRow {
	return &rivertype.JobRow{ID: 7, Kind: "ship", Queue: "default", EncodedArgs: []byte(args), Metadata: []byte(`{"tenant":"acme"}`)}
}

func TestTheTable(t *testing.T) {
	t.Parallel()
	snoozed := func(err error) bool {
		s, ok := errors.AsType[*rivertype.JobSnoozeError](err)
		return ok && s.Duration >= 4*time.Second && s.Duration <= 6*time.Second
	}
	cancelled := func(err error) bool { _, ok := errors.AsType[*rivertype.JobCancelError](err); return ok }
	is := func(want error) func(error) bool {
		return func(err error) bool {
			return errors.Is(err, want) && !cancelled(err) && !snoozed(err) && !errors.Is(err, &rivertype.JobCancelError{})
		}
	}
	jobtest.Test(t, jobtest.Queue{
		Mount: func(_ *testing.T, l *core.Locker, template string, opts ...core.Option) jobtest.Run {
			kind := "ship"
			if template == "" {
				kind, template = "bill", "order:{order_id}"
			}
			mw := rivermw.Middleware(l, rivermw.WithKind(kind, template, opts...))
			return func(args string, work jobtest.Work) error { return mw.Work(t.Context(), job(args), work) }
		},
		Told: map[jobtest.Outcome]func(error) bool{
			jobtest.Held: snoozed, jobtest.Draining: snoozed, jobtest.Closed: is(core.ErrClosed), jobtest.Unavailable: is(core.ErrUnavailable),
			jobtest.BadKey: cancelled, jobtest.Duplicate: func(err error) bool { return err == nil }, jobtest.Lost: is(core.ErrLost),
		},
		Names:    map[string]string{"tenant:{metadata:tenant}": "tenant:acme", "{river:kind}:{river:queue}:{river:id}": "ship:default:7"},
		Verdicts: []error{rivertype.JobCancel(jobtest.ErrBroken), &rivertype.JobSnoozeError{Duration: time.Hour}},
		Label:    " job:ship:7",
	})
}

func TestADuplicateIsCompletedAndLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	mw := rivermw.Middleware(jobtest.Locker(t, memlock.New()), rivermw.WithKind("ship", "order:{order_id}", core.WithDedup(time.Hour)),
		rivermw.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	ran := 0
	for range 2 {
		if err := mw.Work(t.Context(), job(`{"order_id":42}`), func(context.Context) error { ran++; return nil }); err != nil {
			t.Error(err)
		}
	}
	if ran != 1 {
		t.Errorf("ran %d times", ran)
	}
	if line := log.String(); strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "kind=ship queue=default id=7\n") || strings.Contains(line, "order:42") {
		t.Errorf("%q", line)
	}
}

func TestAFunctionsErrorDecides(t *testing.T) {
	t.Parallel()
	for _, want := range []error{jobtest.ErrBroken, core.ErrInvalid} {
		mw := rivermw.Middleware(jobtest.Locker(t, memlock.New()), rivermw.WithKindFunc("ship",
			func(context.Context, *rivertype.JobRow) (string, error) { return "", want }))
		err := mw.Work(t.Context(), job(`{}`), func(context.Context) error { t.Error("it ran"); return nil })
		if _, cancelled := errors.AsType[*rivertype.JobCancelError](err); cancelled != (want == core.ErrInvalid) || !errors.Is(err, want) { //nolint:errorlint // that very error
			t.Errorf("%v became %v", want, err)
		}
	}
}

func TestRulesThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	locks := jobtest.Locker(t, memlock.New())
	for what, opts := range map[string][]rivermw.Option{
		"a nil option":      {nil},
		"a broken template": {rivermw.WithKind("ship", "order:{id")},
		"an unknown source": {rivermw.WithKind("ship", "order:{header:id}")},
		"no kind":           {rivermw.WithKind("", "order:{id}")},
		"a template twice":  {rivermw.WithKind("ship", "order:{id} order:{id}")},
		"a kind twice":      {rivermw.WithKind("ship", "a"), rivermw.WithKind("ship", "b")},
		"a broken option":   {rivermw.WithKind("ship", "a", core.WithTTL(1))},
		"no function":       {rivermw.WithKindFunc("ship", nil)},
		"no snooze":         {rivermw.WithSnooze(0)},
	} {
		if _, err := rivermw.New(locks, opts...); !errors.Is(err, core.ErrInvalid) || !strings.HasPrefix(err.Error(), "rivermw: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := rivermw.New(nil); !errors.Is(err, core.ErrInvalid) {
		t.Error(err)
	}
}
