package examples_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// The rules that the pages show can be made, and what they show of functions runs.

func TestTheRulesOfThePagesCanWork(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	ok := func(echo.Context) error { return nil }
	echoRoutes(locks, ok, ok) // these panic
	handler := http.NotFoundHandler()
	httpRoutes(locks, handler, handler, handler)
	grpcStop(grpcRules(locks))
	taskCron(asynq.NewServeMux(), locks)
	_, inHTTP := httpConfig(locks)
	_, inGRPC := grpcFunction(locks)
	if err := errors.Join(inHTTP, inGRPC, grpcAnnotations(locks)); err != nil {
		t.Error(err)
	}
}

func TestTheFunctionsOfThePagesRun(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	for name, run := range map[string]func(context.Context, *core.Locker) error{
		"do":      functionDo,
		"lease":   functionLease,
		"reentry": functionReentry,
		"dedup":   functionDedup,
		"all":     functionAll,
		"shared":  functionShared,
		"limit":   functionLimit,
		"kept":    functionMinHold,
		"value":   func(ctx context.Context, l *core.Locker) error { _, err := functionValue(ctx, l); return err },
		"wrap":    func(ctx context.Context, l *core.Locker) error { _, err := functionWrap(ctx, l); return err },
		"leader":  func(ctx context.Context, l *core.Locker) error { return functionCampaign(ctx, l, "host-1") },
		"hand-off": func(ctx context.Context, l *core.Locker) error {
			lease, err := l.Acquire(ctx, "order:7")
			noError(t, err)
			return functionHandOff(ctx, lease, func(ctx context.Context, sent string) error {
				return functionAttach(ctx, l, sent)
			})
		},
		"confirm": func(ctx context.Context, l *core.Locker) error { return l.Do(ctx, "bank", functionConfirm) },
	} {
		if err := run(t.Context(), locks); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A stock client waits for as long as a refusal says, and for nothing else. It is not to be hurried by a number that it
// cannot read.
func TestTheClientOfThePagesSendsAgainWhatWasRefused(t *testing.T) {
	t.Parallel()
	const late = 10 * time.Second // the client's deadline
	for after, want := range map[string]int{"0": 5, "": 1, "-1": 1, "soon": 1, "3600": 1, "4294967296": 1, "99999999999999999999": 1} {
		calls := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if calls++; calls < 5 && after != "" {
				w.Header().Set("Retry-After", after)
				w.WriteHeader(http.StatusConflict)
			}
		}))
		ctx, cancel := context.WithTimeout(t.Context(), late)
		if want == 1 && strings.Trim(after, "0123456789") == "" && after != "" { // it waits: nobody needs to
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
		}
		res, err := httpClient(ctx, func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, server.URL, http.NoBody)
		})
		if err == nil {
			res.Body.Close()
		}
		if calls != want || (err != nil) != (ctx.Err() != nil) {
			t.Errorf("Retry-After %q: %d calls, %v", after, calls, err)
		}
		cancel()
		server.Close()
	}
}
