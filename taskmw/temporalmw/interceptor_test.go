package temporalmw_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/internal/jobtest"
	"github.com/holdfast-go/holdfast/taskmw/temporalmw"
)

// mount runs activities, registered as Ship, behind a rule. Their arguments are the job's and "ann".
func mount(t *testing.T, l *core.Locker, template string, opts ...core.Option) jobtest.Run {
	t.Helper()
	kind := "Ship"
	if template == "" {
		kind, template = "Bill", "order:{order_id}"
	}
	i := temporalmw.Interceptor(l, temporalmw.WithActivity(kind, template, opts...))
	return func(args string, work jobtest.Work) error {
		background, cancel := context.WithCancel(t.Context())
		defer cancel()
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		env.SetWorkerOptions(worker.Options{BackgroundActivityContext: background, Interceptors: []interceptor.WorkerInterceptor{i}})
		env.RegisterActivityWithOptions(func(ctx context.Context, _ map[string]any, _ string) error {
			err := work(ctx)
			if errors.Is(err, context.Canceled) { // and so it was
				cancel()
			}
			return err
		}, activity.RegisterOptions{Name: "Ship"})
		_, err := env.ExecuteActivity("Ship", json.RawMessage(args), "ann")
		return err
	}
}

func TestTheTable(t *testing.T) {
	t.Parallel()
	is := func(kind, says string, retry bool, from, to time.Duration) func(error) bool {
		return func(err error) bool {
			failed, ok := errors.AsType[*temporal.ApplicationError](err)
			return ok && failed.Type() == kind && failed.NonRetryable() != retry && strings.Contains(err.Error(), says) &&
				failed.NextRetryDelay() >= from && failed.NextRetryDelay() <= to
		}
	}
	jobtest.Test(t, jobtest.Queue{
		Mount: mount,
		Told: map[jobtest.Outcome]func(error) bool{
			jobtest.Held:        is(temporalmw.TypeHeld, "is held", true, 4*time.Second, 6*time.Second),
			jobtest.Draining:    is(temporalmw.TypeUnavailable, "about to stop", true, 0, 0),
			jobtest.Closed:      is(temporalmw.TypeUnavailable, "about to stop", true, 0, 0),
			jobtest.Unavailable: is(temporalmw.TypeUnavailable, "did not answer", true, 0, 0),
			jobtest.BadKey:      is(temporalmw.TypeKey, "} is ", false, 0, 0),
			jobtest.Duplicate:   is(temporalmw.TypeDuplicate, "done before", false, 0, 0),
			jobtest.Lost:        is(temporalmw.TypeLost, "was lost", true, 0, 0),
		},
		Names: map[string]string{
			"customer:{arg:1}": "customer:ann", "activity:{temporal:activity}": "activity:Ship",
			"{temporal:workflow}/{temporal:queue}": "default-test-workflow-id/default-test-taskqueue",
		},
		Verdicts: []error{temporal.NewNonRetryableApplicationError("never again", "Never", nil), context.Canceled, temporal.NewCanceledError("cleaned up")},
		Label:    " Ship",
		Typed:    true, Wrapped: true, Hidden: true,
	})
}

func TestAnActivitysErrorIsItsOwn(t *testing.T) {
	t.Parallel()
	err := mount(t, jobtest.Locker(t, memlock.New()), "order:{order_id}")(`{"order_id":42}`, func(context.Context) error {
		return temporal.NewNonRetryableApplicationError("no stock", "NoStock", nil)
	})
	if failed, ok := errors.AsType[*temporal.ApplicationError](err); !ok || failed.Type() != "NoStock" || !failed.NonRetryable() {
		t.Errorf("%v", err)
	}
}

func TestRulesThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	locks := jobtest.Locker(t, memlock.New())
	for what, opts := range map[string][]temporalmw.Option{
		"a nil option":      {nil},
		"a broken template": {temporalmw.WithActivity("Ship", "order:{id")},
		"an unknown source": {temporalmw.WithActivity("Ship", "order:{header:id}")},
		"no number":         {temporalmw.WithActivity("Ship", "order:{arg:x}")},
		"a negative number": {temporalmw.WithActivity("Ship", "order:{arg:-1}")},
		"no type":           {temporalmw.WithActivity("", "order:{id}")},
		"a type twice":      {temporalmw.WithActivity("Ship", "a"), temporalmw.WithActivity("Ship", "b")},
		"a broken option":   {temporalmw.WithActivity("Ship", "a", core.WithTTL(1))},
		"no function":       {temporalmw.WithActivityFunc("Ship", nil)},
	} {
		if _, err := temporalmw.New(locks, opts...); !errors.Is(err, core.ErrInvalid) || !strings.HasPrefix(err.Error(), "temporalmw: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := temporalmw.New(nil); !errors.Is(err, core.ErrInvalid) {
		t.Error(err)
	}
}
