package watermillmw_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw/watermillmw"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLocker(t *testing.T, d driver.Driver) *core.Locker {
	t.Helper()
	l, err := core.New(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return l
}

func order(t *testing.T, payload string) *message.Message {
	t.Helper()
	msg := message.NewMessage("m-1", message.Payload(payload))
	msg.Metadata.Set("tenant", "acme")
	msg.SetContext(t.Context())
	return msg
}

var errBroken = errors.New("broken")

func TestAMessageIsHandledUnderItsName(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"order:{order.id}": "order:42", "tenant:{metadata:tenant|text}": "tenant:acme", "message:{watermill:uuid}": "message:m-1",
	} {
		msg := order(t, `{"order":{"id":42}}`)
		out := []*message.Message{message.NewMessage("m-2", nil)}
		produced, err := watermillmw.Lock(newLocker(t, memlock.New()), template)(func(msg *message.Message) ([]*message.Message, error) {
			if x, ok := core.FromContext(msg.Context()); !ok || x.Name() != want {
				t.Errorf("%s: %v", template, x)
			}
			return out, nil
		})(msg)
		if err != nil || len(produced) != 1 || produced[0] != out[0] {
			t.Errorf("%s: %v, %v", template, produced, err)
		}
		if _, ok := core.FromContext(msg.Context()); ok {
			t.Error("the context was not put back")
		}
	}
}

func TestAHandlersErrorIsItsOwn(t *testing.T) {
	t.Parallel()
	for _, own := range []error{errBroken, core.ErrHeld, core.ErrDuplicate} {
		_, err := watermillmw.Lock(newLocker(t, memlock.New()), "order:{id}")(func(*message.Message) ([]*message.Message, error) {
			return nil, own
		})(order(t, `{"id":42}`))
		if err != own { //nolint:errorlint // that very error
			t.Errorf("%v became %v", own, err)
		}
	}
}

func TestARefusedMessageIsNotHandled(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		payload string
		before  func(t *testing.T, store *memlock.Store, locks, other *core.Locker)
		want    error
	}{
		"Held": {`{"id":42}`, func(t *testing.T, _ *memlock.Store, _, other *core.Locker) {
			t.Helper()
			x, err := other.TryAcquire(t.Context(), "order:42")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = x.Release(context.WithoutCancel(t.Context())) })
		}, core.ErrHeld},
		"NoValue":     {`{}`, nil, watermillmw.ErrKey},
		"NotJSON":     {`<order/>`, nil, watermillmw.ErrKey},
		"Unavailable": {`{"id":42}`, func(_ *testing.T, s *memlock.Store, _, _ *core.Locker) { s.SetDown(true) }, core.ErrUnavailable},
		"Closed": {`{"id":42}`, func(t *testing.T, _ *memlock.Store, locks, _ *core.Locker) {
			t.Helper()
			_ = locks.Close(t.Context())
		}, core.ErrClosed},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			store := memlock.New()
			locks, other := newLocker(t, store), newLocker(t, store)
			if test.before != nil {
				test.before(t, store, locks, other)
			}
			defer store.SetDown(false)
			produced, err := watermillmw.Lock(locks, "order:{id}", core.WithWait(0))(func(*message.Message) ([]*message.Message, error) {
				t.Error("it ran")
				return nil, nil
			})(order(t, test.payload))
			if !errors.Is(err, test.want) || produced != nil {
				t.Errorf("%v, %v", produced, err)
			}
		})
	}
}

func TestAMessageHoldsAllNamesOfItsKeys(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	locks, other := newLocker(t, store), newLocker(t, store)
	lock := watermillmw.Lock(locks, "account:{from} account:{metadata:tenant|text}", core.WithWait(0))
	handled := func(*message.Message) ([]*message.Message, error) {
		for _, name := range []string{"account:ann", "account:acme"} {
			if _, err := other.TryAcquire(t.Context(), name); !errors.Is(err, core.ErrHeld) {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil, errBroken
	}
	if _, err := lock(handled)(order(t, `{"from":"ann"}`)); err != errBroken { //nolint:errorlint // that very error
		t.Error(err)
	}
	x, err := other.Acquire(t.Context(), "account:acme")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Release(context.WithoutCancel(t.Context())) }()
	if _, err := lock(handled)(order(t, `{"from":"ann"}`)); !errors.Is(err, core.ErrHeld) {
		t.Errorf("one of them held: %v", err)
	}
	if _, err := lock(handled)(order(t, `{}`)); !errors.Is(err, watermillmw.ErrKey) {
		t.Errorf("one of them missing: %v", err)
	}
}

func TestALossPublishesNothing(t *testing.T) {
	t.Parallel()
	lock := watermillmw.Lock(newLocker(t, memlock.New()), "order:{id}", core.WithMaxHold(10*time.Millisecond))
	produced, err := lock(func(msg *message.Message) ([]*message.Message, error) {
		<-msg.Context().Done()
		return []*message.Message{message.NewMessage("m-2", nil)}, nil
	})(order(t, `{"id":42}`))
	if !errors.Is(err, core.ErrLost) || produced != nil {
		t.Errorf("%v, %v", produced, err)
	}
}

func TestHostilePayloadsGetLocksOfTheirOwnNames(t *testing.T) {
	t.Parallel()
	lock := watermillmw.Lock(newLocker(t, memlock.New()), hostile.Template)
	var names hostile.Names
	for what, value := range hostile.Values() {
		payload, err := json.Marshal(map[string]string{"v": value})
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.ValidString(value) {
			continue // JSON has no such strings
		}
		_, err = lock(func(msg *message.Message) ([]*message.Message, error) {
			x, _ := core.FromContext(msg.Context())
			names.Check(t, value, x.Name())
			return nil, nil
		})(order(t, string(payload)))
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRulesThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, memlock.New())
	for what, made := range map[string]func() (message.HandlerMiddleware, error){
		"no locker":           func() (message.HandlerMiddleware, error) { return watermillmw.New(nil, "a") },
		"a broken template":   func() (message.HandlerMiddleware, error) { return watermillmw.New(locks, "order:{id") },
		"text without a form": func() (message.HandlerMiddleware, error) { return watermillmw.New(locks, "order:{metadata:id}") },
		"an unknown source":   func() (message.HandlerMiddleware, error) { return watermillmw.New(locks, "order:{header:id}") },
		"an option":           func() (message.HandlerMiddleware, error) { return watermillmw.New(locks, "a", core.WithTTL(1)) },
		"no function":         func() (message.HandlerMiddleware, error) { return watermillmw.LockFunc(locks, nil) },
	} {
		if _, err := made(); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestDedupIsOfAHandler(t *testing.T) {
	t.Parallel()
	lock := watermillmw.Lock(newLocker(t, memlock.New()), "order:{id}", core.WithDedup(time.Hour))
	pubsub := gochannel.NewGoChannel(gochannel.Config{}, watermill.NopLogger{})
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	handled := make(chan string, 2)
	for _, name := range []string{"pay", "ship"} { // each has the message
		router.AddNoPublisherHandler(name, "orders", pubsub, func(msg *message.Message) error {
			handled <- message.HandlerNameFromCtx(msg.Context())
			return nil
		}).AddMiddleware(func(next message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				defer func() { handled <- "" }() // also if it was not handled
				return next(msg)
			}
		}, lock)
	}
	over := make(chan error, 1)
	go func() { over <- router.Run(context.WithoutCancel(t.Context())) }()
	<-router.Running()
	if err := pubsub.Publish("orders", message.NewMessage("m-1", message.Payload(`{"id":42}`))); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for got[""] < 2 {
		got[<-handled]++
	}
	if got["pay"] != 1 || got["ship"] != 1 {
		t.Errorf("handled %v", got)
	}
	if err := errors.Join(router.Close(), <-over, pubsub.Close()); err != nil {
		t.Error(err)
	}
}

// flaky refuses the first message, as a broker does that has a new leader.
type flaky struct {
	refused   bool
	published chan string
}

func (f *flaky) Publish(_ string, msgs ...*message.Message) error {
	if !f.refused {
		f.refused = true
		return errBroken
	}
	for _, msg := range msgs {
		f.published <- msg.UUID
	}
	return nil
}

func (*flaky) Close() error { return nil }

// The router publishes after the release, and the broker brings the message back if that fails.
func TestAMessageWhoseResultIsNotPublishedIsHandledAgain(t *testing.T) {
	t.Parallel()
	pubsub, out := gochannel.NewGoChannel(gochannel.Config{}, watermill.NopLogger{}), &flaky{published: make(chan string, 1)}
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	deliveries := make(chan error, 2) // each delivery that comes out of the lock
	router.AddHandler("ship", "orders", pubsub, "shipped", out, func(*message.Message) ([]*message.Message, error) {
		return []*message.Message{message.NewMessage("m-2", nil)}, nil
	}).AddMiddleware(
		func(next message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				produced, err := next(msg)
				if err == nil && len(produced) == 0 {
					err = core.ErrDuplicate
				}
				deliveries <- err
				return produced, err
			}
		},
		watermillmw.Lock(newLocker(t, memlock.New()), "order:{id}", core.WithDedup(time.Hour)),
	)
	over := make(chan error, 1)
	go func() { over <- router.Run(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		if err := errors.Join(router.Close(), <-over, pubsub.Close()); err != nil {
			t.Error(err)
		}
	})
	<-router.Running()
	if err := pubsub.Publish("orders", message.NewMessage("m-1", message.Payload(`{"id":42}`))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-deliveries; err != nil {
			t.Fatalf("acknowledged, and its result was never published: %v", err)
		}
	}
	if id := <-out.published; id != "m-2" {
		t.Errorf("published %s", id)
	}
}

// Two routers, as of two processes, get the same message, as after a rebalance.
func TestARedeliveredMessageIsHandledOnce(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	other := newLocker(t, store)
	pubsub := gochannel.NewGoChannel(gochannel.Config{}, watermill.NopLogger{})
	handled := make(chan string, 2)
	acknowledged := make(chan struct{}, 2)
	for range 2 {
		router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
		if err != nil {
			t.Fatal(err)
		}
		router.AddNoPublisherHandler("ship", "orders", pubsub, func(msg *message.Message) error {
			x, _ := core.FromContext(msg.Context())
			_, err := other.TryAcquire(msg.Context(), x.Name())
			if held, ok := errors.AsType[*core.HeldError](err); !ok || !strings.HasSuffix(held.Label, " ship") {
				t.Errorf("the holder is not told: %v", err)
			}
			handled <- x.Name()
			return nil
		}).AddMiddleware(
			func(next message.HandlerFunc) message.HandlerFunc {
				return func(msg *message.Message) ([]*message.Message, error) {
					produced, err := next(msg)
					if err != nil {
						t.Error(err)
					}
					acknowledged <- struct{}{}
					return produced, err
				}
			},
			watermillmw.Lock(newLocker(t, store), "order:{id}", core.WithDedup(time.Hour)),
		)
		over := make(chan error, 1)
		go func() { over <- router.Run(context.WithoutCancel(t.Context())) }()
		t.Cleanup(func() {
			if err := errors.Join(router.Close(), <-over); err != nil {
				t.Error(err)
			}
		})
		<-router.Running()
	}
	if err := pubsub.Publish("orders", message.NewMessage("m-1", message.Payload(`{"id":42}`))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		<-acknowledged
	}
	if n := len(handled); n != 1 || <-handled != "order:42" {
		t.Errorf("handled %d times", n)
	}
}
