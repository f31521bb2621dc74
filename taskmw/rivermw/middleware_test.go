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
	"github.com/holdfast-go/holdfast/internal/jobtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
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
		Package: "rivermw: ", Kind: "ship",
		New: func(t *testing.T, l *core.Locker, rules ...jobtest.Rule) (jobtest.Run, error) {
			t.Helper()
			mw, err := rivermw.New(l, jobtest.Options(rules, rivermw.WithKind, rivermw.WithKindFunc)...)
			return func(args string, work jobtest.Work) error { return mw.Work(t.Context(), job(args), work) }, err
		},
		Refused: []string{"order:{header:id}", "order:{river:attempt}"},
		Told: map[error]func(error) bool{
			core.ErrHeld: snoozed, core.ErrDraining: snoozed, core.ErrClosed: is(core.ErrClosed), core.ErrUnavailable: is(core.ErrUnavailable),
			core.ErrInvalid: cancelled, core.ErrDuplicate: func(err error) bool { return err == nil }, core.ErrLost: is(core.ErrLost),
		},
		Names:    map[string]string{"tenant:{metadata:tenant}": "tenant:acme", "{river:kind}:{river:queue}:{river:id}": "ship:default:7"},
		Verdicts: []error{rivertype.JobCancel(jobtest.ErrBroken), &rivertype.JobSnoozeError{Duration: time.Hour}},
		Label:    " job:ship:7",
	})
}

func TestADuplicateIsCompletedAndLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	mw := rivermw.Middleware(locktest.Memory(t), rivermw.WithKind("ship", "order:{order_id}", core.WithDedup(time.Hour)),
		rivermw.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	ran := 0
	for range 2 {
		locktest.OK(t, mw.Work(t.Context(), job(`{"order_id":42}`), func(context.Context) error { ran++; return nil }))
	}
	if ran != 1 {
		t.Errorf("ran %d times", ran)
	}
	if line := log.String(); strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "kind=ship queue=default id=7\n") || strings.Contains(line, "order:42") {
		t.Errorf("%q", line)
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for _, opt := range []rivermw.Option{nil, rivermw.WithSnooze(0), rivermw.WithSnooze(-1)} {
		if _, err := rivermw.New(locktest.Memory(t), opt); !errors.Is(err, core.ErrInvalid) || !strings.HasPrefix(err.Error(), "rivermw: ") {
			t.Error(err)
		}
	}
}
