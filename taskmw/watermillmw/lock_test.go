package watermillmw_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/jobtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw/watermillmw"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheTable(t *testing.T) {
	t.Parallel()
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	done := []*message.Message{message.NewMessage("m-2", nil)}
	jobtest.Test(t, jobtest.Queue{
		New: func(t *testing.T, l *core.Locker, rules ...jobtest.Rule) (jobtest.Run, error) {
			t.Helper()
			r := rules[0]
			var name func(context.Context, *message.Message) (string, error)
			if r.Func != nil {
				name = func(ctx context.Context, _ *message.Message) (string, error) { return r.Func(ctx) }
			}
			lock, err := watermillmw.LockFunc(l, name, r.Opts...)
			if r.Key != "" {
				lock, err = watermillmw.New(l, r.Key, r.Opts...)
			}
			return func(args string, work jobtest.Work) error {
				msg := message.NewMessage("m-1", message.Payload(args))
				msg.Metadata.Set("tenant", "acme")
				msg.SetContext(t.Context())
				var own error
				produced, err := lock(func(msg *message.Message) ([]*message.Message, error) {
					own = work(msg.Context())
					if own != nil {
						return done, own // both are passed on, but for a loss
					}
					return nil, nil
				})(msg)
				if lost := errors.Is(err, core.ErrLost); (produced != nil) != (own != nil && !lost) {
					t.Errorf("%v, %v: published %v", own, err, produced)
				}
				if _, ok := core.FromContext(msg.Context()); ok {
					t.Error("the context was not put back")
				}
				return err
			}, err
		},
		Refused: []string{"order:{metadata:id}", "order:{header:id}"}, // text without a form
		Told: map[error]func(error) bool{
			core.ErrHeld: is(core.ErrHeld), core.ErrDraining: is(core.ErrDraining), core.ErrClosed: is(core.ErrClosed), core.ErrUnavailable: is(core.ErrUnavailable),
			core.ErrInvalid: is(watermillmw.ErrKey), core.ErrDuplicate: is(nil), core.ErrLost: is(core.ErrLost),
		},
		Names:    map[string]string{"tenant:{metadata:tenant|text}": "tenant:acme", "message:{watermill:uuid}": "message:m-1"},
		Verdicts: []error{core.ErrHeld, core.ErrDuplicate},
	})
}

func TestDedupIsOfAHandler(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	lock := watermillmw.Lock(locks, "order:{id}", core.WithDedup(time.Hour))
	pubsub := gochannel.NewGoChannel(gochannel.Config{}, watermill.NopLogger{})
	t.Cleanup(func() { _ = pubsub.Close() })
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	locktest.OK(t, err)
	handled := make(chan string, 2)
	for _, name := range []string{"pay", "ship"} { // each has the message
		router.AddNoPublisherHandler(name, "orders", pubsub, func(msg *message.Message) error {
			_, err := locks.TryAcquire(t.Context(), "order:42")
			if held, ok := errors.AsType[*core.HeldError](err); !ok || !strings.HasSuffix(held.Label, " "+name) {
				t.Errorf("the holder is not told: %v", err)
			}
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
	go func() { over <- router.Run(t.Context()) }()
	t.Cleanup(func() { locktest.OK(t, errors.Join(router.Close(), <-over)) })
	<-router.Running()
	locktest.OK(t, pubsub.Publish("orders", message.NewMessage("m-1", message.Payload(`{"id":42}`))))
	got := map[string]int{}
	for got[""] < 2 {
		got[<-handled]++
	}
	if got["pay"] != 1 || got["ship"] != 1 {
		t.Errorf("handled %v", got)
	}
}

// The router publishes after the release, and that may fail: then the broker brings the message back.
func TestAMessageWhoseResultIsNotPublishedIsHandledAgain(t *testing.T) {
	t.Parallel()
	h := watermillmw.Lock(locktest.Memory(t), "order:{id}", core.WithDedup(time.Hour))(func(*message.Message) ([]*message.Message, error) {
		return []*message.Message{message.NewMessage("m-2", nil)}, nil
	})
	for range 2 {
		produced, err := h(message.NewMessage("m-1", []byte(`{"id":42}`)))
		if err != nil || len(produced) != 1 {
			t.Errorf("acknowledged, and its result was never published: %v, %v", produced, err)
		}
	}
}
