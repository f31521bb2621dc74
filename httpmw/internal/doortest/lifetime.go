package doortest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

func testLifetime(t *testing.T, door Door) {
	for name, test := range map[string]func(*testing.T, Door){
		"TheHandlerRunsUnderTheLease":              underTheLease,
		"SmallAnswersComeAfterTheRelease":          releasedBeforeTheAnswer,
		"HandlersOfOneNameExcludeEachOther":        exclusion,
		"APanicPassesAfterTheRelease":              panics,
		"ACallerThatLeavesFreesNothingUnderneath":  callerLeaves,
		"TheHandlersContextHasTheRequestsDeadline": deadline,
		"ATimeoutHandlerOutsideFreesNothing":       timeoutHandler,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, door)
		})
	}
}

func underTheLease(t *testing.T, door Door) {
	var b *bench
	b = start(t, door, Setup{Handler: func(w http.ResponseWriter, r *http.Request) {
		if b.free("order:42") {
			t.Error("the name is free while the handler runs")
		}
		if lease, _ := core.FromContext(r.Context()); lease.Fence() == 0 {
			t.Error("no fence in the context")
		}
		leaseName(w, r)
	}})
	b.passed(b.do("POST /orders/42", ""), "order:42")
}

func releasedBeforeTheAnswer(t *testing.T, door Door) {
	b := start(t, door, Setup{})
	for range 20 {
		b.passed(b.do("POST /orders/42", ""), "order:42")
		if !b.free("order:42") {
			t.Fatal("the answer came before the release")
		}
	}
}

func exclusion(t *testing.T, door Door) {
	var inside atomic.Int32
	b := start(t, door, Setup{
		Options: []core.Option{core.WithWait(time.Minute)},
		Handler: func(http.ResponseWriter, *http.Request) {
			if inside.Add(1) != 1 {
				t.Error("two handlers at once")
			}
			inside.Add(-1)
		},
	})
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 10 {
				if got := b.do("POST /orders/42", ""); got.status != http.StatusOK {
					t.Errorf("answered %d %s", got.status, got.body)
				}
			}
		})
	}
	clients.Wait()
	b.handled(80)
}

func panics(t *testing.T, door Door) {
	thrown := errors.New("thrown")
	caught := make(chan any, 1)
	b := start(t, door, Setup{
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

func callerLeaves(t *testing.T, door Door) {
	entered, gone, checked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	finished := make(chan struct{})
	b := start(t, door, Setup{
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
	if err != nil {
		t.Fatal(err)
	}
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

func deadline(t *testing.T, door Door) {
	type key struct{}
	b := start(t, door, Setup{
		Handler: func(_ http.ResponseWriter, r *http.Request) {
			if _, ok := r.Context().Deadline(); !ok {
				t.Error("the deadline has gone")
			}
			if r.Context().Value(key{}) != "value" {
				t.Error("the values have gone")
			}
		},
		Outer: func(next http.Handler) http.Handler {
			return within(time.Minute)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, "value")))
			}))
		},
	})
	b.do("POST /orders/42", "")
	b.handled(1)
}

// The client has its answer, and the handler goes on.
func timeoutHandler(t *testing.T, door Door) {
	ended, checked, finished := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	b := start(t, door, Setup{
		Handler: func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			close(ended)
			<-checked
		},
		Outer: func(next http.Handler) http.Handler {
			return http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r)
				finished <- struct{}{}
			}), 10*time.Millisecond, "too long")
		},
	})
	for entered := false; !entered; { // a slow machine may need more time to get there
		if got := b.do("POST /orders/42", ""); got.status != http.StatusServiceUnavailable {
			t.Errorf("answered %d %q", got.status, got.body)
		}
		select {
		case <-ended:
			entered = true
		case <-finished:
		}
	}
	if b.free("order:42") {
		t.Error("free while the handler runs")
	}
	close(checked)
	<-finished
	if !b.free("order:42") {
		t.Error("not released after the handler returned")
	}
}
