package mwtest

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func testLifetime(t *testing.T, mount Mount) {
	run(t, mount, map[string]func(*testing.T, Mount){
		"SmallAnswersComeAfterTheRelease":         releasedBeforeTheAnswer,
		"APanicPassesAfterTheRelease":             panics,
		"ACallerThatLeavesFreesNothingUnderneath": callerLeaves,
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

func panics(t *testing.T, mount Mount) {
	thrown := errors.New("thrown")
	caught := make(chan any, 1)
	b := start(t, mount, Setup{
		Handler: func(http.ResponseWriter, *http.Request) { panic(thrown) },
		Outer: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					caught <- recover()
					w.WriteHeader(http.StatusTeapot)
				}()
				next.ServeHTTP(w, r)
			})
		},
	})
	if got := b.do("POST /orders/42", ""); got.status != http.StatusTeapot {
		t.Errorf("answered %d", got.status)
	}
	if v := <-caught; v != any(thrown) {
		t.Errorf("caught %v, want what was thrown", v)
	}
	if !b.free("order:42") {
		t.Error("not released")
	}
}

func callerLeaves(t *testing.T, mount Mount) {
	entered, gone, checked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	finished := make(chan struct{})
	b := start(t, mount, Setup{
		Handler: func(_ http.ResponseWriter, r *http.Request) {
			close(entered)
			<-r.Context().Done()
			if cause := context.Cause(r.Context()); !errors.Is(cause, context.Canceled) {
				t.Errorf("cause: %v", cause)
			}
			close(gone)
			<-checked
		},
		Outer: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(finished)
				next.ServeHTTP(w, r)
			})
		},
	})
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/orders/42", http.NoBody)
	locktest.OK(t, err)
	go func() {
		<-entered
		leave()
	}()
	if res, err := b.srv.Client().Do(r); err == nil {
		_ = res.Body.Close()
		t.Error("answered a client that had left")
	}
	<-gone
	if b.free("order:42") {
		t.Error("free while the handler runs")
	}
	close(checked)
	<-finished
	if !b.free("order:42") {
		t.Error("not released after the handler returned")
	}
}
