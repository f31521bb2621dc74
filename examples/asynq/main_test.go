package main

import (
	"strings"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/taskmw"
)

func TestTheExampleDoesWhatItSays(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), &out, taskmw.Middleware); err != nil || strings.Count(out.String(), "\n") != 7 {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

func TestTheExampleFailsWithoutTheMiddleware(t *testing.T) {
	t.Parallel()
	none := func(*core.Locker, ...taskmw.Option) asynq.MiddlewareFunc {
		return func(next asynq.Handler) asynq.Handler { return next }
	}
	if err := run(t.Context(), new(strings.Builder), none); err == nil || !strings.Contains(err.Error(), "Skip: {runs:4 unrun:0}, want {runs:1 unrun:3}") {
		t.Error(err)
	}
}
