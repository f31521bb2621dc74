package mwtest

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

func testDedup(t *testing.T, mount Mount) {
	run(t, mount, map[string]func(*testing.T, Mount){"WhatSucceededIsDone": dedupByStatus, "TheScopeIsChosenAtTheStart": dedupOperations})
}

var (
	day  = core.WithDedup(24 * time.Hour)
	paid = []core.Option{day, core.WithDedupScope("pay")}
)

func dedupByStatus(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{Options: paid, Handler: func(w http.ResponseWriter, r *http.Request) {
		if status, err := strconv.Atoi(r.Header.Get("Status")); err == nil {
			w.WriteHeader(status)
		}
	}})
	for i, test := range []struct {
		status string
		done   bool
	}{
		{"", true}, {"200", true}, {"201", true}, {"204", true}, {"303", true}, {"399", true},
		{"307", false}, {"308", false}, {"400", false}, {"404", false}, {"409", false}, {"500", false}, {"503", false},
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

// A scope names what is done once. Where none is chosen, a lock before several routes would take all of them for one.
func dedupOperations(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{Options: paid})
	b.passed(b.do("POST /orders/42", ""), "order:42")
	b.expect(b.do("PUT /orders/42", ""), rowDone)
	b.expect(b.do("POST /refunds/42", ""), rowDone)
	b.passed(b.do("POST /orders/43", ""), "order:43")
}

func dedupHijack(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{Options: append([]core.Option{core.WithWait(time.Minute)}, paid...), Handler: func(w http.ResponseWriter, _ *http.Request) { hijack(w, func() {}) }})
	b.passed(b.do("POST /orders/42", ""), "raw")
	b.passed(b.do("POST /orders/42", ""), "raw")
}
