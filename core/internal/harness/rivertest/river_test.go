package rivertest

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw/rivermw"
)

// ship is a job.
type ship struct {
	OrderID int `json:"order_id,omitempty"`
}

func (ship) Kind() string { return "ship" }

// start runs a River with one kind of job until the test ends.
func start(t *testing.T, mw rivertype.WorkerMiddleware, work func(context.Context) error) (*river.Client[*sql.Tx], <-chan *river.Event) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "river.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	locktest.OK(t, err)
	db.SetMaxOpenConns(1) // as River's documentation wants it for SQLite
	t.Cleanup(func() { _ = db.Close() })
	driver := riversqlite.New(db)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	locktest.OK(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	locktest.OK(t, err)
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, _ *river.Job[ship]) error { return work(ctx) }))
	client, err := river.NewClient(driver, &river.Config{
		Logger:            slog.New(slog.DiscardHandler),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}},
		Workers:           workers,
		Middleware:        []rivertype.Middleware{mw},
		FetchPollInterval: 50 * time.Millisecond,
		FetchCooldown:     20 * time.Millisecond,
	})
	locktest.OK(t, err)
	events, cancel := client.Subscribe(river.EventKindJobCompleted, river.EventKindJobCancelled, river.EventKindJobSnoozed, river.EventKindJobFailed)
	t.Cleanup(cancel)
	locktest.OK(t, client.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
		defer cancel()
		locktest.OK(t, client.Stop(ctx))
	})
	return client, events
}

func insert(t *testing.T, client *river.Client[*sql.Tx], job ship) {
	t.Helper()
	_, err := client.Insert(t.Context(), job, nil)
	locktest.OK(t, err)
}

// So the wait for the name does not count against it.
func TestAJobsTimeoutBeginsInsideTheLock(t *testing.T) {
	t.Parallel()
	timed := make(chan bool, 2)
	look := func(ctx context.Context) {
		_, ok := ctx.Deadline()
		timed <- ok
	}
	name := func(ctx context.Context, _ *rivertype.JobRow) (string, error) {
		look(ctx)
		return "order:42", nil
	}
	client, events := start(t, rivermw.Middleware(locktest.Memory(t), rivermw.WithKindFunc("ship", name)),
		func(ctx context.Context) error { look(ctx); return nil })
	insert(t, client, ship{OrderID: 42})
	<-events
	if ahead, inside := <-timed, <-timed; ahead || !inside {
		t.Errorf("a deadline ahead of the lock: %v, in the worker: %v", ahead, inside)
	}
}

func TestAJobWhoseLockIsHeldIsSnoozedAndRunsUnderItWithoutCostingAnAttempt(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	release := locktest.Hold(t, locktest.Locker(t, store), "order:42")
	client, events := start(t, rivermw.Middleware(locktest.Locker(t, store), rivermw.WithKind("ship", "order:{order_id}"), rivermw.WithSnooze(time.Second)),
		func(ctx context.Context) error {
			if x, ok := core.FromContext(ctx); !ok || x.Name() != "order:42" {
				t.Errorf("it runs under %v", x)
			}
			return nil
		})
	insert(t, client, ship{OrderID: 42})
	if e := <-events; e.Kind != river.EventKindJobSnoozed || len(e.Job.Errors) > 0 {
		t.Fatalf("%s %v", e.Kind, e.Job.Errors)
	}
	release()
	for e := range events { // River looks for snoozed jobs every 5 s
		if e.Kind == river.EventKindJobSnoozed {
			continue
		}
		if e.Kind != river.EventKindJobCompleted || e.Job.Attempt != 1 {
			t.Errorf("%s, attempt %d", e.Kind, e.Job.Attempt)
		}
		return
	}
}
