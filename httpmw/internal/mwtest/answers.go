package mwtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func named(name string, err error) func(*http.Request) (string, error) {
	return func(*http.Request) (string, error) { return name, err }
}

// testAnswers is the table of what a client gets: for a request, in a state of the lock, with an error of the handler.
func testAnswers(t *testing.T, mount Mount) {
	held := &core.HeldError{Name: "stock:" + locktest.Secret, Label: locktest.Secret, RetryAfter: time.Second}
	inside := func(row row) row {
		row.retryAfter = ""
		row.body = strings.Replace(row.body, `This request was not started."}`, `What this request has done is not known.","started":true}`, 1)
		return row
	}
	for name, test := range map[string]struct {
		setup   Setup
		refused error // with which the lock is
		want    row
		ran     int32
	}{
		"Held":              {refused: core.ErrHeld, want: rowHeld},
		"Duplicate":         {refused: core.ErrDuplicate, setup: Setup{Options: paid}, want: rowDone},
		"Unavailable":       {refused: core.ErrUnavailable, want: rowUnavailable},
		"Closed":            {refused: core.ErrClosed, want: rowStopping},
		"Draining":          {refused: core.ErrDraining, want: rowStopping},
		"Ended":             {setup: Setup{Outer: ended}, want: rowInterrupted},
		"KeyFuncFails":      {setup: Setup{KeyFunc: named("order:42", errors.New(locktest.Secret))}, want: rowBadKey},
		"KeyFuncHeld":       {setup: Setup{KeyFunc: named("order:42", core.ErrHeld)}, want: rowBadKey},
		"KeyFuncWithoutOne": {setup: Setup{KeyFunc: named("", nil)}, want: rowBadKey},
		"LostAtTheRelease":  {refused: core.ErrLost, setup: Setup{Handler: func(http.ResponseWriter, *http.Request) {}}, want: rowLost, ran: 1},
		"InnerHeld":         {setup: Setup{Fails: held}, want: inside(rowHeld), ran: 1},
		"InnerHeldJoined":   {setup: Setup{Fails: errors.Join(errors.New(locktest.Secret), held)}, want: inside(rowHeld), ran: 1},
		"InnerHeldSkipped":  {setup: Setup{Fails: held, Skipper: func(*http.Request) bool { return true }}, want: inside(rowHeld), ran: 1},
		"InnerLost":         {setup: Setup{Fails: &core.LostError{Name: locktest.Secret, Reason: core.ReasonExpired}}, want: rowLost, ran: 1},
		"InnerUnavailable":  {setup: Setup{Fails: core.ErrUnavailable}, want: inside(rowUnavailable), ran: 1},
		"InnerBadName":      {setup: Setup{Fails: core.ErrInvalid}, want: rowBadKey, ran: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.setup.Fails != nil {
				test.setup.Handler = func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Etag", `"7"`) } // which is not the answer's
			}
			b := start(t, mount, test.setup)
			locktest.Refuse(t, b.store, b.locks, "order:42", test.refused)
			got := b.do("POST /orders/42", "")
			b.expect(got, test.want)
			b.handled(test.ran)
			if test.ran == 1 && !strings.Contains(got.body, `"started":true`) {
				t.Errorf("the client is told that nothing was started: %s", got.body)
			}
			if strings.Contains(got.body+fmt.Sprint(got.header), locktest.Secret) || got.header.Get("Etag") != "" {
				t.Errorf("the client is told a secret: %v %s", got.header, got.body)
			}
		})
	}
	run(t, mount, map[string]func(*testing.T, Mount){
		"ABrokenRouteIsLoggedOnce": loggedOnce, "SkippedRequestsAreNotLocked": skipped, "TheLabelHasMethodAndRoute": operation,
		"AnErrorHandlerAnswersInstead": answeredInstead,
	})
}

// answeredInstead has the request from outside, whose context goes on.
func answeredInstead(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{
		Options: short, Handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, p *httpmw.Problem) {
			if r.Context().Err() != nil {
				t.Error("the error handler's context has ended")
			}
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(p.Type))
		},
	})
	if got := b.do("POST /orders/42", ""); got.status != http.StatusTeapot || got.body != httpmw.TypeLost {
		t.Errorf("lost: %d %s", got.status, got.body)
	}
	locktest.Hold(t, b.other, "order:42")
	if got := b.do("POST /orders/42", ""); got.status != http.StatusTeapot || got.body != httpmw.TypeHeld {
		t.Errorf("held: %d %s", got.status, got.body)
	}
}

// ended has requests end before they come.
func ended(w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	next.ServeHTTP(w, r.WithContext(ctx))
}

// Core finds only with a request that a rule with dedup stands under the same lock, and the middleware that a route lacks a
// parameter.
func loggedOnce(t *testing.T, mount Mount) {
	for name, test := range map[string]struct {
		setup Setup
		line  string
		want  row
		says  []string
	}{
		"NoSuchParameter": {Setup{}, "POST /plain", rowRoute, []string{"/plain", "{id|int}", "the route does not have it"}},
		"Unlockable":      {Setup{Key: "order:{id|int}", Options: paid}, "POST /orders/42", rowUnlockable, []string{"WithDedup"}},
	} {
		var log bytes.Buffer
		var b *bench
		test.setup.Logger = slog.New(slog.NewTextHandler(&log, nil))
		test.setup.Outer = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			_ = b.locks.Do(r.Context(), "order:42", func(ctx context.Context) error {
				next.ServeHTTP(w, r.WithContext(ctx))
				return nil
			})
		}
		b = start(t, mount, test.setup)
		b.expect(b.do(test.line, ""), test.want)
		b.expect(b.do(test.line, ""), test.want)
		b.handled(0)
		for _, says := range test.says {
			if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), says) {
				t.Errorf("%s: want one line with %q:\n%s", name, says, log.String())
			}
		}
	}
}

func skipped(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{Skipper: func(r *http.Request) bool { return r.Method == http.MethodGet }})
	locktest.Hold(t, b.other, "order:42")
	b.passed(b.do("GET /orders/42", ""), "none")
	b.expect(b.do("POST /orders/42", ""), rowHeld)
}

func operation(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{})
	b.do("POST /orders/42", "")
	label := (<-b.store.Granted).Label
	who, what, _ := strings.Cut(label, " ")
	if !strings.Contains(who, ":") || !strings.HasPrefix(what, "POST /") || strings.Contains(what, "42") {
		t.Errorf("label %q", label)
	}
}

func testConstruction(t *testing.T, mount Mount) {
	locks := locktest.Memory(t)
	for name, test := range map[string]struct {
		setup Setup
		says  string
	}{
		"NoLocker":           {Setup{Key: "order:{id|int}"}, ""},
		"ALockerNotFromNew":  {Setup{Locker: new(core.Locker), Key: "order:{id|int}"}, ""},
		"NoKey":              {Setup{Locker: locks}, "not exactly one of Key and KeyFunc"},
		"TwoKeys":            {Setup{Locker: locks, Key: "order:{id|int}", KeyFunc: named("x", nil)}, "not exactly one of Key and KeyFunc"},
		"APathWithoutAForm":  {Setup{Locker: locks, Key: "order:{id}"}, "the template gives it: {id|int}, {id|uuid} or {id|text}"},
		"AQueryWithoutAForm": {Setup{Locker: locks, Key: "order:{query:id}"}, "{query:id|int}"},
		"HeaderWithoutAForm": {Setup{Locker: locks, Key: "order:{header:X-Order}"}, "{header:X-Order|int}"},
		"AForm":              {Setup{Locker: locks, Key: "order:{form:id|int}"}, "{parameter}, {query:name}, {header:Name} and {body:a.b}"},
		"NoHeaderName":       {Setup{Locker: locks, Key: "order:{header:x[1]|text}"}, "no header can have this name"},
		"NoASCIIHeaderName":  {Setup{Locker: locks, Key: "order:{header:größe|text}"}, "no header can have this name"},
		"AColonParameter":    {Setup{Locker: locks, Key: "orders/:id"}, "between braces"},
		"AColonAtTheStart":   {Setup{Locker: locks, Key: ":id"}, "between braces"},
		"AColonAfterAColon":  {Setup{Locker: locks, Key: "order::id"}, "between braces"},
		"AngleBrackets":      {Setup{Locker: locks, Key: "order:<id>"}, "between braces"},
		"ANegativeMaxBody":   {Setup{Locker: locks, Key: "order:{id|int}", MaxBody: -1}, "MaxBody -1"},
		"AnImpossibleOption": {Setup{Locker: locks, Key: "order:{id|int}", Options: []core.Option{core.WithTTL(time.Nanosecond)}}, ""},
		"DedupWithoutAScope": {Setup{Locker: locks, Key: "order:{id|int}", Options: []core.Option{day}}, "WithDedupScope"},
		"DedupOfTheLocker":   {Setup{Locker: locktest.Locker(t, memlock.New(), day), Key: "order:{id|int}"}, "WithDedupScope"},
	} {
		test.setup.Handler = LeaseName
		if _, err := mount(test.setup); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want ErrInvalid that says %q", name, err, test.says)
		}
	}
	for key, warns := range map[string]bool{"job:nightly": true, "order:{id|int}:pay": false} { // legal, and seldom what was meant
		var log bytes.Buffer
		_, err := mount(Setup{Locker: locks, Key: key, Handler: LeaseName, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if got := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), "job:nightly"); err != nil || got != warns {
			t.Errorf("%s: %v, logged %q", key, err, log.String())
		}
	}
}
