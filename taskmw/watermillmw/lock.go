package watermillmw

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
)

// ErrKey says that a message has no usable name to lock. The error matches [core.ErrInvalid] too, and
// holds nothing of the message.
var ErrKey = errors.New("watermillmw: the message does not say what to lock")

// Lock returns middleware that holds the lock that key names while a message is handled. A handler that needs
// several names at once has several templates, with a space between them. It panics on a key or an option that cannot
// work; [New] returns an error instead.
//
// With [core.WithDedup], a handler that produces messages has to publish them itself. One that returns messages is
// never marked as done, because they are published later, and that may fail.
func Lock(l *core.Locker, template string, opts ...core.Option) message.HandlerMiddleware {
	mw, err := New(l, template, opts...)
	if err != nil {
		panic("watermillmw: " + err.Error())
	}
	return mw
}

// New is [Lock], and returns an error that matches [core.ErrInvalid] for what cannot work.
func New(l *core.Locker, template string, opts ...core.Option) (message.HandlerMiddleware, error) {
	k, err := adapter.NewKey(template, sources)
	if err != nil {
		return nil, err
	}
	told := core.WithTemplate(template)
	return newMiddleware(l, k.Names, append([]core.Option{told}, opts...))
}

// LockFunc is [New] with a function that returns the name to lock. Use key.Key's Name, of package core/key,
// for values that come from outside. An error that matches [core.ErrInvalid] becomes an [ErrKey]; any other is returned
// unchanged.
func LockFunc(l *core.Locker, name func(*message.Message) (string, error), opts ...core.Option) (message.HandlerMiddleware, error) {
	if name == nil {
		return nil, fmt.Errorf("%w: nil function", core.ErrInvalid)
	}
	return newMiddleware(l, func(_ context.Context, msg *message.Message) ([]string, error) {
		n, err := name(msg)
		if err == nil {
			err = key.CheckName(n)
		}
		return []string{n}, err
	}, opts)
}

// namesFunc makes the names of the locks from a message, mostly one.
type namesFunc func(context.Context, *message.Message) ([]string, error)

func newMiddleware(l *core.Locker, names namesFunc, opts []core.Option) (message.HandlerMiddleware, error) {
	locks, err := l.With(opts...)
	if err != nil {
		return nil, err
	}
	window, scope := locks.Dedup()
	d := &door{locks: locks, names: names, scoped: window > 0 && scope == ""}
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) { return d.handle(msg, next) }
	}, nil
}

// door is a rule made ready.
type door struct {
	locks  *core.Locker
	names  namesFunc
	scoped bool     // a dedup marker's scope is the handler
	known  sync.Map // handler → *core.Locker
}

func (d *door) handle(msg *message.Message, next message.HandlerFunc) (produced []*message.Message, err error) {
	names, err := d.names(msg.Context(), msg)
	if err != nil {
		return nil, keyless(err)
	}
	outside := msg.Context()
	defer msg.SetContext(outside) // also if the handler panics
	ran := false
	var own error // the handler's
	err = d.hold(outside, names, func(ctx context.Context) error {
		ran = true
		msg.SetContext(ctx)
		switch produced, own = next(msg); {
		case own != nil:
			return errFailed // a loss in own is that of another lease
		case len(produced) > 0:
			return errUnpublished // the router may fail to, and then the message has to be handled again
		default:
			return nil
		}
	})
	lost, isLost := errors.AsType[*core.LostError](err)
	switch {
	case !ran && errors.Is(err, core.ErrDuplicate):
		return nil, nil
	case !ran:
		return nil, err
	case isLost:
		return nil, errors.Join(own, lost)
	default:
		return produced, own // as the handler returned them
	}
}

// Either leaves no dedup marker.
var (
	errFailed      = errors.New("the handler did not succeed")
	errUnpublished = errors.New("what the handler returned is not published yet")
)

func (d *door) hold(ctx context.Context, names []string, work func(context.Context) error) error {
	locks, err := d.forHandler(message.HandlerNameFromCtx(ctx))
	switch {
	case err != nil:
		return err
	case len(names) == 1:
		return locks.Do(ctx, names[0], work)
	default:
		return locks.DoAll(ctx, names, work)
	}
}

// forHandler is the Locker with what only a message says: the handler's name, empty without a router. It is a part
// of the holder's label, and the scope of a dedup marker unless somebody has chosen another one.
func (d *door) forHandler(name string) (*core.Locker, error) {
	if name == "" {
		return d.locks, nil
	}
	if l, ok := d.known.Load(name); ok {
		return l.(*core.Locker), nil //nolint:forcetypeassert // it has no other values
	}
	opts := []core.Option{core.WithOperation(name)}
	if d.scoped {
		opts = append(opts, core.WithDedupScope(name))
	}
	l, err := d.locks.With(opts...)
	if err == nil {
		d.known.Store(name, l)
	}
	return l, err
}

func keyless(err error) error {
	if !errors.Is(err, core.ErrInvalid) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrKey, err)
}
