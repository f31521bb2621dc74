package cronmw_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw/cronmw"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines is a cron.Logger.
type lines struct{ said []string }

func (l *lines) Info(msg string, pairs ...any) {
	l.said = append(l.said, fmt.Sprint("info ", msg, pairs))
}

func (l *lines) Error(err error, msg string, pairs ...any) {
	l.said = append(l.said, fmt.Sprint("error ", msg, pairs, err))
}

func (l *lines) has(t *testing.T, words ...string) {
	t.Helper()
	if len(l.said) != 1 {
		t.Fatalf("%d lines: %q", len(l.said), l.said)
	}
	for _, word := range words {
		if !strings.Contains(l.said[0], word) {
			t.Errorf("%q does not say %q", l.said[0], word)
		}
	}
}

func TestAJobRunsUnderItsName(t *testing.T) {
	t.Parallel()
	var log lines
	locks := locktest.Memory(t)
	ran := 0
	wrap := cronmw.SkipIfHeld(locks, "cron:report", &log)
	cron.NewChain(wrap).Then(cronmw.Func(func(ctx context.Context) error {
		x, _ := core.FromContext(ctx)
		if ran++; x.Name() != "cron:report" {
			t.Error(x.Name())
		}
		return nil
	})).Run()
	cron.NewChain(wrap).Then(cron.FuncJob(func() { ran++ })).Run()
	if ran != 2 || len(log.said) != 0 {
		t.Errorf("ran %d times, said %q", ran, log.said)
	}
}

func TestATickThatAnotherNodeHasRunIsSkippedAndLogged(t *testing.T) {
	t.Parallel()
	var log lines
	locks := locktest.Memory(t)
	ran := 0
	for range 2 { // one after the other: the second node fires late
		cronmw.SkipIfHeld(locks, "cron:report", &log, core.WithMinHold(time.Hour))(cron.FuncJob(func() { ran++ })).Run()
	}
	if ran != 1 {
		t.Errorf("ran %d times", ran)
	}
	log.has(t, "info skip", "cron:report", "held")
}

func TestWhatBecomesOfAJobIsLogged(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]struct {
		job   cronmw.Func
		drain bool
		ran   bool
	}{
		"no paper":      {func(context.Context) error { return errors.New("no paper") }, false, true},
		"lost":          {func(ctx context.Context) error { <-ctx.Done(); return nil }, false, true},
		"held":          {func(context.Context) error { return core.ErrHeld }, false, true}, // by a lock of its own
		"about to stop": {func(context.Context) error { t.Error("it ran"); return nil }, true, false},
	} {
		var log lines
		locks := locktest.Memory(t)
		if c.drain {
			locktest.OK(t, locks.Drain(t.Context()))
		}
		cronmw.SkipIfHeld(locks, "cron:report", &log, core.WithMaxHold(10*time.Millisecond))(c.job).Run()
		log.has(t, map[bool]string{true: "error run", false: "error not run"}[c.ran], says)
	}
}

func TestWrappersThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	for what, err := range map[string]error{
		"no locker": second(cronmw.NewWrapper(nil, "cron:report", cron.DiscardLogger)),
		"no logger": second(cronmw.NewWrapper(locks, "cron:report", nil)),
		"a name":    second(cronmw.NewWrapper(locks, "cron report", cron.DiscardLogger)),
		"an option": second(cronmw.NewWrapper(locks, "cron:report", cron.DiscardLogger, core.WithTTL(1))),
	} {
		if !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	cronmw.SkipIfHeld(locks, "", cron.DiscardLogger)
}

func second[T any](_ T, err error) error { return err }
