package taskmw_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/internal/jobtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

func TestTheTable(t *testing.T) {
	t.Parallel()
	cfg := configured(t, asynq.Config{})
	is := func(want error) func(error) bool {
		return func(err error) bool { return errors.Is(err, want) && isPlain(t, err) }
	}
	jobtest.Test(t, jobtest.Queue{
		Package: "taskmw: ", Kind: "order:ship",
		New: func(t *testing.T, l *core.Locker, rules ...jobtest.Rule) (jobtest.Run, error) {
			t.Helper()
			opts := []taskmw.Option{taskmw.WithLogger(slog.New(slog.DiscardHandler))}
			for i := range rules {
				rules[i].Opts = append([]core.Option{core.WithLabel("mine")}, rules[i].Opts...) // which does nothing
			}
			for _, r := range jobtest.Options(rules, taskmw.WithType, taskmw.WithTypeFunc) {
				opts = append(opts, r)
			}
			mw, err := taskmw.New(l, opts...)
			return func(args string, work jobtest.Work) error {
				mux := muxOf(func(ctx context.Context, _ *asynq.Task) error { return work(ctx) }, mw)
				return mux.ProcessTask(taskContext(t), asynq.NewTaskWithHeaders("order:ship", []byte(args), map[string]string{"tenant": "acme:eu", "Tenant": "other"}))
			}, err
		},
		Refused: []string{"order:{query:id}", "order:{header:id}", "order:{asynq:retries}"},
		Told: map[error]func(error) bool{
			core.ErrHeld: func(err error) bool {
				d := cfg.RetryDelayFunc(3, err, shipTask())
				return errors.Is(err, taskmw.ErrConflict) && !cfg.IsFailure(err) && d >= 4*time.Second && d <= 6*time.Second
			},
			core.ErrDraining: func(err error) bool {
				return errors.Is(err, core.ErrDraining) && !errors.Is(err, taskmw.ErrConflict) && !cfg.IsFailure(err)
			},
			core.ErrClosed: is(core.ErrClosed), core.ErrUnavailable: is(core.ErrUnavailable), core.ErrLost: is(core.ErrLost),
			core.ErrInvalid:   func(err error) bool { return errors.Is(err, asynq.SkipRetry) },
			core.ErrDuplicate: func(err error) bool { return err == nil },
		},
		Names: map[string]string{
			"{asynq:type}": "order%3Aship", "{header:tenant|text}:{order_id}": "acme%3Aeu:42", "{header:Tenant|text}": "other",
			"{order_id}/{asynq:type}/{order_id}/{customer.id}": "42/order%3Aship/42/c1",
		},
		Verdicts: []error{asynq.SkipRetry, asynq.RevokeTask},
		Label:    "task:order:ship:",
	})
}

// Beside the table of all queues. A task's last attempt is in the tests of servers.
func TestWhatBecomesOfATaskThatDoesNotRun(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	x, err := locks.TryAcquire(taskContext(t), "order:42", core.WithShared(), core.WithLabel("task:order:ship:8f3c"))
	locktest.OK(t, err)
	t.Cleanup(func() { _ = x.Release(context.Background()) })
	ended, cancel := context.WithCancel(taskContext(t))
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		told func(error) bool
	}{
		"held, and it has no ID": {taskContext(t), func(err error) bool { return errors.Is(err, taskmw.ErrConflict) }},
		"its context has ended":  {ended, func(err error) bool { return errors.Is(err, context.Canceled) && isPlain(t, err) }},
		"a rule that cannot work where it stands": {x.Context(), func(err error) bool {
			return errors.Is(err, core.ErrInvalid) && errors.Is(err, asynq.SkipRetry)
		}},
		"a server without Configure": {t.Context(), func(err error) bool {
			return isPlain(t, err) && strings.Contains(err.Error(), "taskmw.Configure(&cfg)")
		}},
	} {
		if err := muxOf(mustNotRun(t), ship(t, locks, taskmw.Skip)).ProcessTask(c.ctx, shipTask()); !c.told(err) {
			t.Errorf("%s: asynq is told %v", name, err)
		}
	}
}

func TestATaskThatIsFinishedWithoutARunIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	mux := muxOf(succeed, middleware(t, locktest.Memory(t), taskmw.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
		taskmw.WithType("order:ship", "order:{order_id}", core.WithDedup(time.Hour))))
	for range 2 {
		locktest.OK(t, mux.ProcessTask(taskContext(t), shipTask()))
	}
	if s := log.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, "its work is already done") || strings.Contains(s, "order:42") {
		t.Errorf("logged %q", s)
	}
}

// What a handler returns is the task's, whatever the action. With a lost lock it is not to be trusted.
func TestWhatAHandlerReturns(t *testing.T) {
	t.Parallel()
	for _, action := range []taskmw.Action{taskmw.Retry, taskmw.Skip, taskmw.Coalesce} {
		for _, own := range []error{
			nil, &core.HeldError{Name: "stock:7"}, core.ErrInvalid, &core.LostError{Name: "stock:7"}, fmt.Errorf("gone: %w", asynq.RevokeTask),
		} {
			mux := muxOf(func(context.Context, *asynq.Task) error { return own }, ship(t, locktest.Memory(t), action))
			if err := mux.ProcessTask(taskContext(t), shipTask()); err != own { //nolint:errorlint // the very value
				t.Errorf("%d: the handler returned %v, asynq is told %v", action, own, err)
			}
			mux = muxOf(func(ctx context.Context, _ *asynq.Task) error { <-ctx.Done(); return own },
				ship(t, locktest.Memory(t), action, core.WithMaxHold(10*time.Millisecond)))
			err := mux.ProcessTask(taskContext(t), shipTask())
			if !errors.Is(err, core.ErrLost) || !isPlain(t, err) || own != nil && !strings.Contains(err.Error(), own.Error()) {
				t.Errorf("%d, with a lost lock: the handler returned %v, asynq is told %v", action, own, err)
			}
		}
	}
	if !configured(t, asynq.Config{}).IsFailure(&core.HeldError{Name: "stock:7"}) {
		t.Error("a handler's ErrHeld is taken for the middleware's")
	}
}

func TestAConflictOfAMiddlewareFurtherInIsAConflict(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	locks := locktest.Locker(t, store)
	hold(t, store, "stock")
	err := muxOf(mustNotRun(t), ship(t, locks, taskmw.Retry), middleware(t, locks, taskmw.WithType("*", "stock"))).
		ProcessTask(taskContext(t), shipTask())
	if !errors.Is(err, taskmw.ErrConflict) || configured(t, asynq.Config{}).IsFailure(err) || !isFree(t, store) {
		t.Errorf("got %v", err)
	}
}

func TestWaitWaitsAsLongAsTheTasksTimeAllowsAndTheRule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		left, wait, free time.Duration // how long the task has, 0 for ever; the rule's; when the name comes free, -1 for never
	}{
		{time.Second, core.WaitForever, -1},
		{30 * time.Minute, core.WaitForever, -1},
		{0, time.Minute, -1},
		{time.Microsecond, core.WaitForever, 0},
		{100 * 365 * 24 * time.Hour, core.WaitForever, 10 * time.Minute},
		{0, core.WaitForever, 10 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := memlock.New()
			release := hold(t, store, "order:42")
			if c.free == 0 {
				release()
			} else if c.free > 0 {
				time.AfterFunc(c.free, release)
			}
			ctx, cancel := context.WithCancel(taskContext(t))
			if c.left > 0 {
				ctx, cancel = context.WithTimeout(taskContext(t), c.left)
			}
			defer cancel()
			began := time.Now()
			err := muxOf(succeed, ship(t, locktest.Locker(t, store), taskmw.Skip, core.WithWait(c.wait))).ProcessTask(ctx, shipTask())
			waited, most := time.Since(began), cmp.Or(c.left, c.wait)
			inTime := waited >= most*9/10 && most-waited <= 260*time.Millisecond && ctx.Err() == nil
			if c.free >= 0 && err != nil || c.free < 0 && (!errors.Is(err, taskmw.ErrConflict) || !inTime) {
				t.Errorf("%+v: waited %s, %v, context: %v", c, waited, err, ctx.Err())
			}
		})
	}
}

var both = "account:{from} account:{to}"
