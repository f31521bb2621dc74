package doortest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func testDedup(t *testing.T, door Door) {
	t.Run("WhatSucceededIsDone", func(t *testing.T) {
		t.Parallel()
		dedupByStatus(t, door)
	})
	t.Run("TheScopeIsChosenAtTheStart", func(t *testing.T) {
		t.Parallel()
		dedupOperations(t, door)
	})
	t.Run("AChosenScopeWins", func(t *testing.T) {
		t.Parallel()
		dedupScope(t, door)
	})
	t.Run("AHandlerThatGaveUpIsNotDone", func(t *testing.T) {
		t.Parallel()
		dedupGivenUp(t, door)
	})
	t.Run("AHijackedResponseIsNotDone", func(t *testing.T) {
		t.Parallel()
		dedupHijack(t, door)
	})
}

var (
	day  = core.WithDedup(24 * time.Hour)
	paid = []core.Option{day, core.WithDedupScope("pay")}
)

func dedupByStatus(t *testing.T, door Door) {
	b := start(t, door, Setup{Options: paid, Handler: func(w http.ResponseWriter, r *http.Request) {
		if status, err := strconv.Atoi(r.Header.Get("Status")); err == nil {
			w.WriteHeader(status)
		}
	}})
	for i, test := range []struct {
		status string
		done   bool
	}{
		{"", true}, {"200", true}, {"201", true}, {"204", true}, {"303", true}, {"399", true},
		{"400", false}, {"404", false}, {"409", false}, {"500", false}, {"503", false},
	} {
		line := "POST /orders/" + strconv.Itoa(i)
		b.do(line, "", "Status: "+test.status)
		before := b.ran.Load()
		again := b.do(line, "", "Status: 200")
		switch {
		case test.done:
			b.expect(again, rowDone)
			b.handled(before)
		case again.status != http.StatusOK:
			t.Errorf("after %s: answered %d %s, want to be let through", test.status, again.status, again.body)
		}
	}
}

type leaveKey struct{}

// The client leaves, and the handler returns: it writes nothing, since nobody would read it.
func dedupGivenUp(t *testing.T, door Door) {
	b := start(t, door, Setup{
		Options: paid,
		Outer: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ctx, leave := context.WithCancel(r.Context())
				defer leave()
				next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, leaveKey{}, leave)))
			})
		},
		Handler: func(_ http.ResponseWriter, r *http.Request) {
			if leave, ok := r.Context().Value(leaveKey{}).(context.CancelFunc); ok && r.Header.Get("Leave") != "" {
				leave()
				<-r.Context().Done()
			}
		},
	})
	b.do("POST /orders/42", "", "Leave: yes")
	if again := b.do("POST /orders/42", ""); again.status != http.StatusOK {
		t.Errorf("what was given up counts as done: %d %s", again.status, again.body)
	}
	b.expect(b.do("POST /orders/42", ""), rowDone)
}

// A scope names what is done once. Where none is chosen, a lock before several routes would take all of them for one.
func dedupOperations(t *testing.T, door Door) {
	b := start(t, door, Setup{Options: paid})
	b.passed(b.do("POST /orders/42", ""), "order:42")
	b.expect(b.do("PUT /orders/42", ""), rowDone)
	b.expect(b.do("POST /refunds/42", ""), rowDone)
	b.passed(b.do("POST /orders/43", ""), "order:43")
	for what, opts := range map[string][]core.NewOption{"rule": nil, "New": {day}} {
		_, err := door(Setup{Locker: NewLocker(t, &Backend{Store: memlock.New()}, opts...), Key: "order:{id|int}", Options: []core.Option{day}, Handler: leaseName})
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "WithDedupScope") {
			t.Errorf("%s: without a scope: %v", what, err)
		}
	}
}

func dedupScope(t *testing.T, door Door) {
	settle, other := core.WithDedupScope("settle"), core.WithDedupScope("other")
	for name, test := range map[string]struct {
		of         []core.NewOption
		with, rule []core.Option
	}{
		"Rule":         {rule: []core.Option{day, settle}},
		"With":         {with: []core.Option{settle}, rule: []core.Option{day}},
		"New":          {of: []core.NewOption{settle, day}},
		"RuleOverWith": {of: []core.NewOption{other}, with: []core.Option{other}, rule: []core.Option{day, settle}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, err := NewLocker(t, &Backend{Store: memlock.New()}, test.of...).With(test.with...)
			if err != nil {
				t.Fatal(err)
			}
			b := start(t, door, Setup{Locker: locks, Options: test.rule})
			b.passed(b.do("POST /orders/42", ""), "order:42")
			b.expect(b.do("PUT /refunds/42", ""), rowDone)
			b.handled(1)
		})
	}
}

func dedupHijack(t *testing.T, door Door) {
	b := start(t, door, Setup{Options: append([]core.Option{core.WithWait(time.Minute)}, paid...), Handler: func(w http.ResponseWriter, _ *http.Request) { hijack(w, func() {}) }})
	b.passed(b.do("POST /orders/42", ""), "raw")
	b.passed(b.do("POST /orders/42", ""), "raw")
}
