package doortest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func testTable(t *testing.T, door Door) {
	for name, test := range map[string]func(*testing.T, Door){
		"HeldIs409":                         heldIs409,
		"HeldIsKnownWhenTheRequestEnds":     heldAtTheEnd,
		"ARouteWithoutTheSourceIs500":       routeIs500,
		"ALockThatCannotWorkThereIs500":     unlockableIs500,
		"UnavailableIs503":                  unavailableIs503,
		"LocalOnlyGoesOnWithoutTheService":  localOnly,
		"ClosedIs503":                       closedIs503,
		"DrainingIs503AndWorkGoesOn":        drainingIs503,
		"AnEndedRequestIs503":               endedIs503,
		"TheDoorDoesNotWait":                doesNotWait,
		"TheRuleMayWait":                    mayWait,
		"AnInnerErrorIsTheHandlersOwn":      innerError,
		"SkippedRequestsAreNotLocked":       skipped,
		"ObserversSeeTheTemplate":           template,
		"TheLabelHasMethodAndRoute":         operation,
		"AKeyFunctionMakesTheName":          keyFunc,
		"AnErrorOfAKeyFunctionIs400":        keyFuncError,
		"WhatAKeyFunctionMakesIsCheckedToo": keyFuncName,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, door)
		})
	}
}

func heldIs409(t *testing.T, door Door) {
	b := start(t, door, Setup{})
	b.hold("order:42", core.WithLabel("worker-1.internal"))
	b.expect(b.do("POST /orders/42", ""), rowHeld)
	b.handled(0)
	b.passed(b.do("POST /orders/43", ""), "order:43")
}

// within has requests end after d.
func within(d time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), d)
			defer cancel()
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

func heldAtTheEnd(t *testing.T, door Door) {
	var b *bench
	b = start(t, door, Setup{
		Options: []core.Option{core.WithWait(core.WaitForever)},
		Outer: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ctx, end := context.WithCancel(r.Context())
				go func() {
					<-b.store.Waits
					end()
				}()
				next.ServeHTTP(w, r.WithContext(ctx))
			})
		},
	})
	b.hold("order:42")
	b.expect(b.do("POST /orders/42", ""), rowHeld)
	b.handled(0)
}

func routeIs500(t *testing.T, door Door) {
	var log logBuffer
	b := start(t, door, Setup{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	b.expect(b.do("POST /plain", ""), rowRoute)
	b.expect(b.do("POST /plain", ""), rowRoute)
	b.expect(b.do("PUT /plain", ""), rowRoute)
	b.handled(0)
	b.passed(b.do("POST /orders/42", ""), "order:42")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	routes := make(map[string]bool)
	for _, line := range lines {
		_, route, _ := strings.Cut(line, "route=")
		routes[route] = true
	}
	if len(lines) != len(routes) || !strings.Contains(log.String(), "/plain") || !strings.Contains(log.String(), "{id|int}") ||
		!strings.Contains(log.String(), "it has none") {
		t.Errorf("want one line for each route, with route, source and parameters:\n%s", log.String())
	}
}

// Core finds only at run time that a rule with dedup stands under the same lock.
func unlockableIs500(t *testing.T, door Door) {
	for name, s := range map[string]Setup{
		"Key":     {Key: "order:{id|int}"},
		"KeyFunc": {KeyFunc: func(*http.Request) (string, error) { return "order:42", nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b *bench
			var log logBuffer
			s.Logger = slog.New(slog.NewTextHandler(&log, nil))
			s.Options = paid
			s.Outer = func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_ = b.locks.Do(r.Context(), "order:42", func(ctx context.Context) error {
						next.ServeHTTP(w, r.WithContext(ctx))
						return nil
					})
				})
			}
			b = start(t, door, s)
			b.expect(b.do("POST /orders/42", ""), rowUnlockable)
			b.expect(b.do("POST /orders/42", ""), rowUnlockable)
			b.handled(0)
			if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "WithDedup") {
				t.Errorf("want one line that tells why:\n%s", log.String())
			}
		})
	}
}

func unavailableIs503(t *testing.T, door Door) {
	b := start(t, door, Setup{})
	b.store.Down.Store(true)
	b.expect(b.do("POST /orders/42", ""), rowUnavailable)
	b.handled(0)
}

func localOnly(t *testing.T, door Door) {
	store := &Backend{Store: memlock.New()}
	locks := NewLocker(t, fallback.New(store))
	inside, leave := make(chan *core.Lease), make(chan struct{})
	b := start(t, door, Setup{
		Locker:  locks,
		Options: []core.Option{core.OnUnavailable(core.LocalOnly)},
		Handler: func(w http.ResponseWriter, r *http.Request) {
			x, _ := core.FromContext(r.Context())
			inside <- x
			<-leave
			leaseName(w, r)
		},
	})
	request := func() (x *core.Lease, passes func()) {
		answered := make(chan answer, 1)
		go func() { answered <- b.do("POST /orders/42", "") }()
		x = <-inside
		return x, func() {
			t.Helper()
			leave <- struct{}{}
			b.passed(<-answered, "order:42")
		}
	}
	store.SetDown(true)
	x, passes := request()
	if !x.Degraded() || x.Fence() != 0 {
		t.Errorf("degraded %v, fence %d", x.Degraded(), x.Fence())
	}
	b.expect(b.do("POST /orders/42", ""), rowHeld)
	store.SetDown(false)
	b.expect(b.do("POST /orders/42", ""), rowHeld)
	passes()
	if err := locks.Do(t.Context(), "order:43", func(context.Context) error { return nil }); err != nil { // an answer
		t.Error(err)
	}
	x, passes = request()
	if x.Degraded() || x.Fence() == 0 {
		t.Errorf("after the outage: degraded %v, fence %d", x.Degraded(), x.Fence())
	}
	passes()
}

func closedIs503(t *testing.T, door Door) {
	b := start(t, door, Setup{})
	if err := b.locks.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.expect(b.do("POST /orders/42", ""), rowStopping)
	b.handled(0)
}

func drainingIs503(t *testing.T, door Door) {
	inside, leave := make(chan struct{}), make(chan struct{})
	var b *bench
	b = start(t, door, Setup{Handler: func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-leave
		if err := b.locks.Do(r.Context(), "stock:7", func(context.Context) error { return nil }); err != nil {
			t.Errorf("inside: %v", err)
		}
		leaseName(w, r)
	}})
	answered, drained := make(chan answer, 1), make(chan error, 1)
	go func() { answered <- b.do("POST /orders/42", "") }()
	<-inside
	go func() { drained <- b.locks.Drain(t.Context()) }()
	for !b.locks.Draining() {
		runtime.Gosched()
	}
	b.expect(b.do("POST /orders/43", ""), rowStopping)
	close(leave)
	b.passed(<-answered, "order:42")
	if err := <-drained; err != nil {
		t.Error(err)
	}
	b.handled(1)
}

func endedIs503(t *testing.T, door Door) {
	b := start(t, door, Setup{Outer: within(0)})
	b.expect(b.do("POST /orders/42", ""), rowInterrupted)
	b.handled(0)
}

func doesNotWait(t *testing.T, door Door) {
	b := start(t, door, Setup{})
	b.hold("order:42")
	begun := time.Now()
	b.expect(b.do("POST /orders/42", ""), rowHeld)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func mayWait(t *testing.T, door Door) {
	b := start(t, door, Setup{Options: []core.Option{core.WithWait(time.Minute)}})
	free := b.hold("order:42")
	answered := make(chan answer, 1)
	go func() { answered <- b.do("POST /orders/42", "") }()
	select {
	case a := <-answered:
		t.Fatalf("answered %d while the name was held", a.status)
	case <-b.store.Waits:
	}
	free()
	b.passed(<-answered, "order:42")
}

func innerError(t *testing.T, door Door) {
	var b *bench
	b = start(t, door, Setup{Handler: func(w http.ResponseWriter, r *http.Request) {
		_, err := b.locks.TryAcquire(r.Context(), "stock:7")
		if !errors.Is(err, core.ErrHeld) {
			t.Errorf("inner TryAcquire: %v, want ErrHeld", err)
		}
		w.WriteHeader(http.StatusTeapot)
	}})
	b.hold("stock:7")
	if got := b.do("POST /orders/42", ""); got.status != http.StatusTeapot || got.body != "" {
		t.Errorf("answered %d %q, want the handler's own", got.status, got.body)
	}
}

func skipped(t *testing.T, door Door) {
	b := start(t, door, Setup{Skipper: func(r *http.Request) bool { return r.Method == http.MethodGet }})
	b.hold("order:42")
	b.passed(b.do("GET /orders/42", ""), "none")
	b.expect(b.do("POST /orders/42", ""), rowHeld)
}

func template(t *testing.T, door Door) {
	seen := make(chan string, 1)
	locks := NewLocker(t, &Backend{Store: memlock.New()}, core.WithObserver(func(e core.Event) {
		if e.Kind == core.EventAcquired {
			seen <- e.Template
		}
	}))
	b := start(t, door, Setup{Locker: locks})
	b.do("POST /orders/42", "")
	if got := <-seen; got != "order:{id|int}" {
		t.Errorf("template %q", got)
	}
}

func operation(t *testing.T, door Door) {
	var label string
	var b *bench
	b = start(t, door, Setup{Handler: func(http.ResponseWriter, *http.Request) {
		_, err := b.other.TryAcquire(context.Background(), "order:42")
		if held, ok := errors.AsType[*core.HeldError](err); ok {
			label = held.Label
		}
	}})
	b.do("POST /orders/42", "")
	who, what, _ := strings.Cut(label, " ")
	if !strings.Contains(who, ":") || !strings.HasPrefix(what, "POST /") || strings.Contains(what, "42") {
		t.Errorf("label %q", label)
	}
}

func keyFunc(t *testing.T, door Door) {
	b := start(t, door, Setup{KeyFunc: func(r *http.Request) (string, error) {
		return "tenant:" + r.Header.Get("X-Tenant"), nil
	}})
	b.passed(b.do("POST /plain", "", "X-Tenant: acme"), "tenant:acme")
}

func keyFuncError(t *testing.T, door Door) {
	for name, err := range map[string]error{
		"Own": errors.New(Secret), "Held": core.ErrHeld, "Lost": core.ErrLost, "Canceled": context.Canceled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, door, Setup{KeyFunc: func(*http.Request) (string, error) { return "order:42", err }})
			b.expect(b.do("POST /orders/42", ""), rowBadKey)
			b.handled(0)
		})
	}
}

func keyFuncName(t *testing.T, door Door) {
	for _, name := range []string{"", "order 42", "order:{42}", "order:\n", "order:\u00a042", "\xff", strings.Repeat("x", 201)} {
		b := start(t, door, Setup{KeyFunc: func(*http.Request) (string, error) { return name, nil }})
		b.expect(b.do("POST /orders/42", ""), rowBadKey)
		b.handled(0)
	}
}
