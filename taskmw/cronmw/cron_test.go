package cronmw_test

import (
	"context"
	"errors"
	"io"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/robfig/cron/v3"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw/cronmw"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logTo is a cron.Logger that writes a line "what, error=…, lock=…".
func logTo(w io.Writer) cron.Logger { return cron.VerbosePrintfLogger(log.New(w, "", 0)) }

func TestAJobRunsUnderItsName(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	locks := locktest.Memory(t)
	ran := 0
	wrap := cronmw.SkipIfHeld(locks, "cron:report", logTo(&logged))
	cron.NewChain(wrap).Then(cronmw.Func(func(ctx context.Context) error {
		if ran++; locktest.NameOf(ctx) != "cron:report" {
			t.Error(locktest.NameOf(ctx))
		}
		return nil
	})).Run()
	cron.NewChain(wrap).Then(cron.FuncJob(func() { ran++ })).Run()
	if ran != 2 || logged.Len() != 0 {
		t.Errorf("ran %d times, logged %q", ran, logged.String())
	}
}

func TestWhatBecomesOfAJobIsLogged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		refused     error // with which the lock is
		job         cronmw.Func
		begins, why string
	}{
		{nil, func(context.Context) error { return errors.New("no paper") }, "run, error=", "no paper"},
		{nil, func(ctx context.Context) error { <-ctx.Done(); return nil }, "run, error=", "lost"},
		{nil, func(context.Context) error { return core.ErrHeld }, "run, error=", "held"}, // by a lock of its own
		{core.ErrDraining, nil, "not run, error=", "about to stop"},
		{core.ErrHeld, nil, "skip, lock=cron:report, reason=", "held"},
	} {
		var logged strings.Builder
		store := locktest.NewBackend()
		locks := locktest.Locker(t, store)
		locktest.Refuse(t, store, locks, "cron:report", c.refused)
		if c.job == nil {
			c.job = func(context.Context) error { t.Error("it ran"); return nil }
		}
		cronmw.SkipIfHeld(locks, "cron:report", logTo(&logged), core.WithMaxHold(10*time.Millisecond))(c.job).Run()
		s := logged.String()
		if strings.Count(s, "\n") != 1 || !strings.HasPrefix(s, c.begins) || !strings.Contains(s, c.why) || !strings.Contains(s, "lock=cron:report") {
			t.Errorf("logged %q, want one line %q with %q", s, c.begins, c.why)
		}
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
	locktest.Panics(t, "cronmw: ", func() { cronmw.SkipIfHeld(locks, "", cron.DiscardLogger) })
}

func second[T any](_ T, err error) error { return err }

func gocronLocker(t *testing.T, locks *core.Locker, key string, opts ...core.Option) *cronmw.Locker {
	t.Helper()
	locker, err := cronmw.NewLocker(locks, key, opts...)
	locktest.OK(t, err)
	return locker
}

func TestASchedulersJobRunsUnderTheLockOfItsName(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(gocronLocker(t, locks, "cron:{job}")))
	locktest.OK(t, err)
	t.Cleanup(func() { locktest.OK(t, s.Shutdown()) })
	second, ran := gocronLocker(t, locks, "cron:{job}"), make(chan error)
	_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(func() {
		_, err := second.Lock(t.Context(), "report") // of another scheduler, which skips the run
		ran <- err
	}), gocron.WithName("report"))
	locktest.OK(t, err)
	s.Start()
	if err := <-ran; !errors.Is(err, core.ErrHeld) {
		t.Errorf("the second scheduler: %v, want held", err)
	}
	locktest.ComesFree(t, locks, "cron:report")
}

// The process's Locker has a dedup window by default, and gocron does not tell whether the run failed.
func TestAGocronRunLeavesNoMarker(t *testing.T) {
	t.Parallel()
	locks, err := locktest.Memory(t).With(core.WithDedup(time.Hour))
	locktest.OK(t, err)
	locker := gocronLocker(t, locks, "cron:{job}")
	for range 2 {
		run, err := locker.Lock(t.Context(), "report")
		locktest.OK(t, err)
		locktest.OK(t, run.Unlock(t.Context()))
	}
}

func TestALockersKeyHasOneSourceAndNoDedup(t *testing.T) {
	t.Parallel()
	for template, opt := range map[string]core.Option{
		"cron:{job": core.WithWait(0), "cron": core.WithWait(0), "cron:{a}:{b}": core.WithWait(0), "cron:{job}": core.WithDedup(time.Hour),
	} {
		if _, err := cronmw.NewLocker(locktest.Memory(t), template, opt); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: %v", template, err)
		}
	}
}
