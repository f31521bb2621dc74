package temporalmw_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/jobtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw/temporalmw"
)

// mount runs activities, registered as Ship. Their arguments are the job's and "ann".
func mount(t *testing.T, l *core.Locker, rules ...jobtest.Rule) (jobtest.Run, error) {
	t.Helper()
	i, err := temporalmw.New(l, jobtest.Options(rules, temporalmw.WithActivity, temporalmw.WithActivityFunc)...)
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
	}, err
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
		Package: "temporalmw: ", Kind: "Ship", New: mount,
		Refused: []string{"order:{header:id}", "order:{arg:x}", "order:{arg:-1}"},
		Told: map[error]func(error) bool{
			core.ErrHeld:        is(temporalmw.TypeHeld, "is held", true, 4*time.Second, 6*time.Second),
			core.ErrDraining:    is(temporalmw.TypeUnavailable, "about to stop", true, 0, 0),
			core.ErrClosed:      is(temporalmw.TypeUnavailable, "about to stop", true, 0, 0),
			core.ErrUnavailable: is(temporalmw.TypeUnavailable, "did not answer", true, 0, 0),
			core.ErrInvalid:     is(temporalmw.TypeKey, "do not say what to lock", false, 0, 0),
			core.ErrDuplicate:   is(temporalmw.TypeDuplicate, "done before", false, 0, 0),
			core.ErrLost:        is(temporalmw.TypeLost, "was lost", true, 0, 0),
		},
		Names: map[string]string{
			"customer:{arg:1}": "customer:ann", "activity:{temporal:activity}": "activity:Ship",
			"{temporal:workflow}/{temporal:queue}": "default-test-workflow-id/default-test-taskqueue",
		},
		Verdicts: []error{temporal.NewNonRetryableApplicationError("never again", "Never", nil), context.Canceled, temporal.NewCanceledError("cleaned up")},
		Label:    " Ship",
		Wrapped:  true, Hidden: true,
	})
}

func TestAnActivitysErrorIsItsOwn(t *testing.T) {
	t.Parallel()
	run, err := mount(t, locktest.Memory(t), jobtest.Rule{Kind: "Ship", Key: "order:{order_id}"})
	locktest.OK(t, err)
	err = run(`{"order_id":42}`, func(context.Context) error {
		return temporal.NewNonRetryableApplicationError("no stock", "NoStock", nil)
	})
	if failed, ok := errors.AsType[*temporal.ApplicationError](err); !ok || failed.Type() != "NoStock" || !failed.NonRetryable() {
		t.Errorf("%v", err)
	}
}

// Without a checksum, the SDK computes an MD5 of the program, which panics in FIPS 140-only mode: see tools/fips.sh.
func TestMain(m *testing.M) {
	worker.SetBinaryChecksum("test")
	os.Exit(m.Run())
}
