package taskmw_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw"
)

var both = "account:{from} account:{to}"

func TestSeveralNamesAreHeldTogether(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	locks := newLocker(t, store)
	ran := 0
	mux := muxOf(func(ctx context.Context, _ *asynq.Task) error {
		ran++
		for _, name := range []string{"account:1", "account:2"} {
			if _, err := core.FenceFor(ctx, name); err != nil {
				t.Error(err)
			}
		}
		return nil
	}, taskmw.Middleware(locks, taskmw.WithType("order:transfer", both, core.WithDedup(time.Hour))))
	task := asynq.NewTask("order:transfer", []byte(`{"from":2,"to":1}`))
	if err := mux.ProcessTask(taskContext(t), task); err != nil || ran != 1 {
		t.Fatalf("ran %d times: %v", ran, err)
	}
	if err := mux.ProcessTask(taskContext(t), task); err != nil || ran != 1 {
		t.Errorf("a duplicate ran: %v", err)
	}
	x, err := newLocker(t, store).TryAcquire(t.Context(), "account:2")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release(t.Context())                                          //nolint:errcheck // a test's end
	other := asynq.NewTask("order:transfer", []byte(`{"from":1,"to":2}`)) // no duplicate: the other direction
	if err := mux.ProcessTask(taskContext(t), other); !errors.Is(err, taskmw.ErrConflict) || ran != 1 {
		t.Errorf("%v, want a conflict", err)
	}
	if err := mux.ProcessTask(taskContext(t), asynq.NewTask("order:transfer", []byte(`{"from":1}`))); !errors.Is(err, asynq.SkipRetry) ||
		!strings.Contains(err.Error(), "{to}") {
		t.Errorf("%v, want an archived task that says {to}", err)
	}
}

func TestLossOfOneOfSeveralNamesFailsTheTask(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	mux := muxOf(func(ctx context.Context, _ *asynq.Task) error {
		store.Lose("account:1")
		<-ctx.Done()
		return asynq.SkipRetry // no verdict to be trusted
	}, taskmw.Middleware(newLocker(t, store), taskmw.WithType("order:transfer", both, core.WithTTL(200*time.Millisecond))))
	err := mux.ProcessTask(taskContext(t), asynq.NewTask("order:transfer", []byte(`{"from":2,"to":1}`)))
	if !errors.Is(err, core.ErrLost) || errors.Is(err, asynq.SkipRetry) {
		t.Errorf("%v, want a loss that is retried", err)
	}
}

func TestActionsInFavourOfAnotherTaskAreErrorsWithSeveralKeys(t *testing.T) {
	t.Parallel()
	for _, action := range []taskmw.Action{taskmw.Skip, taskmw.Coalesce} {
		_, err := taskmw.New(newLocker(t, memlock.New()), taskmw.WithType("order:transfer", both, taskmw.OnConflict(action)))
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "OnConflict("+action.String()+")") {
			t.Errorf("%s: %v, want ErrInvalid", action, err)
		}
	}
}
