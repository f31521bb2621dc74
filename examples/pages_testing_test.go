package examples_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
)

// What follows is the code of docs/guides/testing.md; readme_test.go compares them.

// virtual runs a test in virtual time, with a lock service and a Locker of its own.
func virtual(t *testing.T, test func(t *testing.T, store *memlock.Store, locks *core.Locker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		test(t, store, process(t, store))
	})
}

// process is a Locker as another process would have it: two of them on one store exclude each other.
func process(t *testing.T, store *memlock.Store) *core.Locker {
	t.Helper()
	locks, err := core.New(store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err) // something still holds a lock
		}
	})
	return locks
}

func TestASecondPaymentIsRefused(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, store *memlock.Store, locks *core.Locker) {
		other := process(t, store)
		err := other.Do(t.Context(), "order:42", func(context.Context) error {
			if code := post(shop(locks, payment), "/orders/42/pay"); code != http.StatusConflict {
				t.Errorf("%d, want 409", code)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if code := post(shop(locks, payment), "/orders/42/pay"); code != http.StatusOK {
			t.Errorf("%d, want 200", code)
		}
	})
}

// shop is your service, with its locks.
func shop(locks *core.Locker, pay http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/pay", httpmw.Lock(locks, "order:{id|int}")(pay))
	return mux
}

func payment(http.ResponseWriter, *http.Request) {}

func post(h http.Handler, path string) (code int) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, http.NoBody))
	return w.Code
}

func TestAPaymentStopsWhenItsLockIsLost(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, store *memlock.Store, locks *core.Locker) {
		pay := func(_ http.ResponseWriter, r *http.Request) {
			store.Lose("order:42")
			<-r.Context().Done() // your code has to stop here
			lost, ok := errors.AsType[*core.LostError](context.Cause(r.Context()))
			if !ok || lost.Reason != core.ReasonTaken {
				t.Errorf("%v, want a loss: taken", context.Cause(r.Context()))
			}
		}
		if code := post(shop(locks, pay), "/orders/42/pay"); code != http.StatusServiceUnavailable {
			t.Errorf("%d, want 503", code)
		}
	})
}

func TestALateWriteIsRefused(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, store *memlock.Store, locks *core.Locker) {
		var orders fence.Memory // your storage
		write := func() error { return nil }
		err := locks.Do(t.Context(), "order:42", func(ctx context.Context) error {
			mine, err := core.FenceFor(ctx, "order:42")
			if err != nil {
				return err
			}
			thief := store.Steal("order:42") // we were paused, and somebody else has the name now
			if err := orders.Do("order:42", thief, write); err != nil {
				t.Errorf("the new holder: %v", err)
			}
			return orders.Do("order:42", mine, write)
		})
		if !errors.Is(err, fence.ErrStale) {
			t.Errorf("%v, want a stale fence", err)
		}
	})
}

func TestWithoutTheLockServiceNoPaymentRuns(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, store *memlock.Store, locks *core.Locker) {
		store.SetDown(true)
		pay := func(http.ResponseWriter, *http.Request) { t.Error("it ran") }
		if code := post(shop(locks, pay), "/orders/42/pay"); code != http.StatusServiceUnavailable {
			t.Errorf("%d, want 503", code)
		}
	})
}

func TestAPaymentSurvivesAShortOutageAndStopsInALongOne(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, store *memlock.Store, locks *core.Locker) {
		err := locks.Do(t.Context(), "order:42", func(ctx context.Context) error {
			store.SetDown(true)
			time.Sleep(4 * time.Second) // virtual: it takes no time
			store.SetDown(false)
			time.Sleep(time.Minute)
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("a short outage: %v", err)
		}
		err = locks.Do(t.Context(), "order:42", func(ctx context.Context) error {
			store.SetDown(true)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if lost, ok := errors.AsType[*core.LostError](err); !ok || lost.Reason != core.ReasonUnreachable {
			t.Errorf("a long outage: %v", err)
		}
		store.SetDown(false)
	})
}

func TestASlowLockServiceCostsNoMoreThanTheDeadline(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, store *memlock.Store, locks *core.Locker) {
		store.SetDelay(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := locks.Do(ctx, "order:42", func(context.Context) error { t.Error("it ran"); return nil })
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		store.SetDelay(0)
	})
}

func TestALostReplyIsNotSomebodyElse(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, store *memlock.Store, locks *core.Locker) {
		store.DropReplies(1)
		ran := false
		err := locks.Do(t.Context(), "order:42", func(context.Context) error { ran = true; return nil })
		if err != nil || !ran {
			t.Errorf("ran: %v, %v", ran, err)
		}
	})
}
