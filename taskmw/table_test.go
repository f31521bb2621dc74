package taskmw_test

import (
	"bytes"
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
		Told: map[jobtest.Outcome]func(error) bool{
			jobtest.Held: func(err error) bool {
				d := cfg.RetryDelayFunc(3, err, shipTask())
				return errors.Is(err, taskmw.ErrConflict) && !cfg.IsFailure(err) && d >= 4*time.Second && d <= 6*time.Second
			},
			jobtest.Draining: func(err error) bool { return errors.Is(err, core.ErrDraining) && !cfg.IsFailure(err) },
			jobtest.Closed:   is(core.ErrClosed), jobtest.Unavailable: is(core.ErrUnavailable), jobtest.Lost: is(core.ErrLost),
			jobtest.BadKey:    func(err error) bool { return errors.Is(err, asynq.SkipRetry) && errors.Is(err, core.ErrInvalid) },
			jobtest.Duplicate: func(err error) bool { return err == nil },
		},
		Names: map[string]string{
			"{asynq:type}": "order%3Aship", "{header:tenant|text}:{order_id}": "acme%3Aeu:42", "{header:Tenant|text}": "other",
			"{order_id}/{asynq:type}/{order_id}/{customer.id}": "42/order%3Aship/42/c1",
		},
		Verdicts: []error{asynq.SkipRetry, asynq.RevokeTask},
		Label:    "task:order:ship:",
	})
}

// What the middleware makes of a task whose handler does not run, beside the table of all queues. A task's last attempt is in
// the tests of servers.
func TestWhatBecomesOfATaskThatDoesNotRun(t *testing.T) {
	t.Parallel()
	const (
		conflict = "is retried, and has not failed"
		failed   = "has failed"
		archived = "is archived"
		finished = "is finished"
	)
	for name, c := range map[string]struct {
		given func(s *memlock.Store, l *core.Locker) context.Context
		opts  []core.Option
		want  string
		is    error
		log   string // "" for no line
	}{
		"held by another task of its type": {func(s *memlock.Store, _ *core.Locker) context.Context {
			holdAs(t, s, "order:42", "task:order:ship:8f3c")
			return taskContext(t)
		}, nil, conflict, core.ErrHeld, ""},
		"done": {func(_ *memlock.Store, l *core.Locker) context.Context {
			locktest.OK(t, muxOf(succeed, ship(t, l, taskmw.Retry, core.WithDedup(time.Hour))).ProcessTask(taskContext(t), shipTask()))
			return taskContext(t)
		}, []core.Option{core.WithDedup(time.Hour)}, finished, nil, "its work is already done"},
		"its context has ended": {func(*memlock.Store, *core.Locker) context.Context {
			ctx, cancel := context.WithCancel(taskContext(t))
			cancel()
			return ctx
		}, nil, failed, context.Canceled, ""},
		"a rule that cannot work where it stands": {func(_ *memlock.Store, l *core.Locker) context.Context {
			x, err := l.TryAcquire(taskContext(t), "order:42", core.WithShared())
			locktest.OK(t, err)
			t.Cleanup(func() { _ = x.Release(context.Background()) })
			return x.Context()
		}, nil, archived, core.ErrInvalid, ""},
		"a server without Configure": {func(*memlock.Store, *core.Locker) context.Context { return t.Context() }, nil, failed, nil, ""},
	} {
		store := memlock.New()
		locks := locktest.Locker(t, store)
		ctx := c.given(store, locks)
		var log bytes.Buffer
		err := muxOf(mustNotRun(t), middleware(t, locks, taskmw.WithType("order:ship", "order:{order_id}", c.opts...),
			taskmw.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))).ProcessTask(ctx, shipTask())
		var got string
		switch cfg := configured(t, asynq.Config{}); {
		case err == nil:
			got = finished
		case errors.Is(err, asynq.SkipRetry):
			got = archived
		case !cfg.IsFailure(err):
			got = conflict
		case isPlain(t, err):
			got = failed
		}
		if got != c.want || !errors.Is(err, c.is) && c.is != nil || errors.Is(err, taskmw.ErrConflict) != errors.Is(err, core.ErrHeld) {
			t.Errorf("%s: it %s: %v", name, got, err)
		}
		if name == "a server without Configure" && !strings.Contains(fmt.Sprint(err), "taskmw.Configure(&cfg)") {
			t.Errorf("the error does not say what to add: %v", err)
		}
		if s := log.String(); strings.Contains(s, "order:42") || !strings.Contains(s, c.log) || strings.Count(s, "\n") != min(1, len(c.log)) {
			t.Errorf("%s: logged %q", name, s)
		}
	}
}

// What a handler returns is the task's, whatever the action. With a lost lock it is not to be trusted.
func TestWhatAHandlerReturns(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, action := range []taskmw.Action{taskmw.Retry, taskmw.Skip, taskmw.Coalesce} {
		for _, own := range []error{
			nil, broken, &core.HeldError{Name: "stock:7"}, core.ErrDuplicate, core.ErrUnavailable, core.ErrInvalid,
			&core.LostError{Name: "stock:7", Reason: core.ReasonTaken}, asynq.SkipRetry, fmt.Errorf("gone: %w", asynq.RevokeTask), context.DeadlineExceeded,
		} {
			mux := muxOf(func(context.Context, *asynq.Task) error { return own }, ship(t, locktest.Memory(t), action))
			if err := mux.ProcessTask(taskContext(t), shipTask()); err != own { //nolint:errorlint // the very value
				t.Errorf("%d: the handler returned %v, asynq is told %v", action, own, err)
			}
			synctest.Test(t, func(t *testing.T) {
				mux := muxOf(func(ctx context.Context, _ *asynq.Task) error {
					<-ctx.Done()
					if lost, ok := errors.AsType[*core.LostError](context.Cause(ctx)); !ok || lost.Name != "order:42" {
						t.Errorf("the cause is %v", context.Cause(ctx))
					}
					return own
				}, ship(t, locktest.Memory(t), action, core.WithMaxHold(time.Second)))
				err := mux.ProcessTask(taskContext(t), shipTask())
				isFinal := errors.Is(own, asynq.SkipRetry) || errors.Is(own, asynq.RevokeTask)
				if !errors.Is(err, core.ErrLost) || !isPlain(t, err) ||
					own != nil && !isFinal && !errors.Is(err, own) || isFinal && !strings.Contains(err.Error(), own.Error()) {
					t.Errorf("%d, with a lost lock: the handler returned %v, asynq is told %v", action, own, err)
				}
			})
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

func TestWaitWaitsAsLongAsTheTasksTimeAllows(t *testing.T) {
	t.Parallel()
	for left, free := range map[time.Duration]time.Duration{ // how long the task has, 0 for ever; when the name comes free, -1 for never
		time.Second: -1, time.Minute: -1, 30 * time.Minute: -1,
		time.Microsecond: 0, 100 * 365 * 24 * time.Hour: 10 * time.Minute, 0: 10 * time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			store := memlock.New()
			release := hold(t, store, "order:42")
			if free == 0 {
				release()
			} else if free > 0 {
				time.AfterFunc(free, release)
			}
			ctx, cancel := context.WithCancel(taskContext(t))
			if left > 0 {
				ctx, cancel = context.WithTimeout(taskContext(t), left)
			}
			defer cancel()
			began := time.Now()
			err := muxOf(succeed, ship(t, locktest.Locker(t, store), taskmw.Retry, core.WithWait(core.WaitForever))).ProcessTask(ctx, shipTask())
			waited := time.Since(began)
			if free >= 0 && err != nil || free < 0 && (!errors.Is(err, taskmw.ErrConflict) || ctx.Err() != nil || waited < left*9/10 || left-waited > 260*time.Millisecond) {
				t.Errorf("with %s: waited %s, %v, context: %v", left, waited, err, ctx.Err())
			}
		})
	}
}

func TestARulesOwnPatienceComesBeforeItsAction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		hold(t, store, "order:42")
		began := time.Now()
		err := muxOf(mustNotRun(t), ship(t, locktest.Locker(t, store), taskmw.Skip, core.WithWait(time.Minute))).ProcessTask(taskContext(t), shipTask())
		if waited := time.Since(began); !errors.Is(err, taskmw.ErrConflict) || waited != time.Minute {
			t.Errorf("after %s: %v", waited, err)
		}
	})
}

var both = "account:{from} account:{to}"
