package cronmw_test

import (
	"context"
	"errors"
	"io"
	"log"
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

// logTo is a cron.Logger that writes a line "what, error=…, lock=…".
func logTo(w io.Writer) cron.Logger { return cron.VerbosePrintfLogger(log.New(w, "", 0)) }

// says fails the test unless there is one line, which begins so and has these words.
func says(t *testing.T, logged *strings.Builder, begins string, words ...string) {
	t.Helper()
	text := logged.String()
	if strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, begins) {
		t.Errorf("logged %q, want one line %q", text, begins)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
}

func TestAJobRunsUnderItsName(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	locks := locktest.Memory(t)
	ran := 0
	wrap := cronmw.SkipIfHeld(locks, "cron:report", logTo(&logged))
	cron.NewChain(wrap).Then(cronmw.Func(func(ctx context.Context) error {
		x, _ := core.FromContext(ctx)
		if ran++; x.Name() != "cron:report" {
			t.Error(x.Name())
		}
		return nil
	})).Run()
	cron.NewChain(wrap).Then(cron.FuncJob(func() { ran++ })).Run()
	if ran != 2 || logged.Len() != 0 {
		t.Errorf("ran %d times, logged %q", ran, logged.String())
	}
}

func TestATickThatAnotherNodeHasRunIsSkippedAndLogged(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	locks := locktest.Memory(t)
	ran := 0
	for range 2 { // one after the other: the second node fires late
		cronmw.SkipIfHeld(locks, "cron:report", logTo(&logged), core.WithMinHold(time.Hour))(cron.FuncJob(func() { ran++ })).Run()
	}
	if ran != 1 {
		t.Errorf("ran %d times", ran)
	}
	says(t, &logged, "skip, lock=cron:report, reason=", "held")
}

func TestWhatBecomesOfAJobIsLogged(t *testing.T) {
	t.Parallel()
	for why, c := range map[string]struct {
		job   cronmw.Func
		drain bool
		ran   bool
	}{
		"no paper":      {func(context.Context) error { return errors.New("no paper") }, false, true},
		"lost":          {func(ctx context.Context) error { <-ctx.Done(); return nil }, false, true},
		"held":          {func(context.Context) error { return core.ErrHeld }, false, true}, // by a lock of its own
		"about to stop": {func(context.Context) error { t.Error("it ran"); return nil }, true, false},
	} {
		var logged strings.Builder
		locks := locktest.Memory(t)
		if c.drain {
			locktest.OK(t, locks.Drain(t.Context()))
		}
		cronmw.SkipIfHeld(locks, "cron:report", logTo(&logged), core.WithMaxHold(10*time.Millisecond))(c.job).Run()
		says(t, &logged, map[bool]string{true: "run, error=", false: "not run, error="}[c.ran], why, "lock=cron:report")
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
