package mwtest

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

func testLifetime(t *testing.T, mount Mount) {
	run(t, mount, map[string]func(*testing.T, Mount){
		"SmallAnswersComeAfterTheRelease":           releasedBeforeTheAnswer,
		"ACallerThatLeavesFreesNothingAndIsNotDone": callerLeaves,
	})
}

func releasedBeforeTheAnswer(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{})
	for range 20 {
		b.passed(b.do("POST /orders/42", ""), "order:42")
		if !b.free("order:42") {
			t.Fatal("the answer came before the release")
		}
	}
}

// The server ends the context, and the handler returns a little later. It writes nothing, since nobody would read it.
func callerLeaves(t *testing.T, mount Mount) {
	var b *bench
	var leave context.CancelFunc
	b = start(t, mount, Setup{
		Options: paid,
		Handler: func(_ http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Leave") == "" {
				return
			}
			leave()
			if <-r.Context().Done(); b.free("order:42") {
				t.Error("free while the handler runs")
			}
		},
		Outer: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			var ctx context.Context
			ctx, leave = context.WithCancel(r.Context())
			defer leave()
			next.ServeHTTP(w, r.WithContext(ctx))
		},
	})
	b.do("POST /orders/42", "", "Leave: yes")
	if !b.free("order:42") {
		t.Error("not released after the handler returned")
	}
	if again := b.do("POST /orders/42", ""); again.status != http.StatusOK {
		t.Errorf("what was given up counts as done: %d %s", again.status, again.body)
	}
	b.expect(b.do("POST /orders/42", ""), rowDone)
}

var (
	day  = core.WithDedup(24 * time.Hour)
	paid = []core.Option{day, core.WithDedupScope("pay")}
)

func testDedup(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{Options: paid, Handler: func(w http.ResponseWriter, r *http.Request) {
		if status, _ := strconv.Atoi(r.Header.Get("Status")); status > 0 {
			w.WriteHeader(status)
		}
	}})
	for status, done := range map[int]bool{
		0: true, 200: true, 204: true, 303: true, 399: true, 307: false, 308: false, 400: false, 409: false, 503: false,
	} {
		line := fmt.Sprint("POST /orders/1", status)
		b.do(line, "", fmt.Sprint("Status: ", status))
		before := b.ran.Load()
		if again := b.do(line, "", "Status: 200"); done {
			b.expect(again, rowDone)
			b.handled(before)
		} else if again.status != http.StatusOK {
			t.Errorf("after %d: answered %d %s, want to be let through", status, again.status, again.body)
		}
	}
}

func dedupHijack(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{Options: append([]core.Option{core.WithWait(time.Minute)}, paid...), Handler: func(w http.ResponseWriter, _ *http.Request) { hijack(w, func() {}) }})
	b.passed(b.do("POST /orders/42", ""), "raw")
	b.passed(b.do("POST /orders/42", ""), "raw")
}
