package watermillmw

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
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
	return adapter.Must(New(l, template, opts...))
}

// New is [Lock], and returns an error that matches [core.ErrInvalid] for what cannot work.
func New(l *core.Locker, template string, opts ...core.Option) (message.HandlerMiddleware, error) {
	k, err := adapter.NewKey(template, sources.Source)
	return newMiddleware(l, k, err, opts)
}

// LockFunc is [New] with a function that returns the name to lock. Use key.Key's Name, of package core/key,
// for values that come from outside. An error that matches [core.ErrInvalid] becomes an [ErrKey]; any other is returned
// unchanged.
func LockFunc(l *core.Locker, name func(context.Context, *message.Message) (string, error), opts ...core.Option) (message.HandlerMiddleware, error) {
	k, err := adapter.KeyFunc("", name)
	return newMiddleware(l, k, err, opts)
}

func newMiddleware(l *core.Locker, k adapter.Key[*message.Message], err error, opts []core.Option) (message.HandlerMiddleware, error) {
	var rule *adapter.Rule[*message.Message]
	if err == nil {
		rule, err = adapter.NewRule(l, k, opts...)
	}
	if err != nil {
		return nil, fmt.Errorf("watermillmw: %w", err)
	}
	window, scope := rule.Locker().Dedup()
	d := &lock{rule: rule, scoped: window > 0 && scope == ""}
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) { return d.handle(msg, next) }
	}, nil
}

// lock is a rule made ready.
type lock struct {
	rule   *adapter.Rule[*message.Message]
	scoped bool // a dedup marker's scope is the handler
}

func (d *lock) handle(msg *message.Message, next message.HandlerFunc) (produced []*message.Message, err error) {
	outside := msg.Context()
	defer msg.SetContext(outside) // also if the handler panics
	var own error                 // the handler's
	out := d.rule.Run(outside, msg, func(ctx context.Context) error {
		msg.SetContext(ctx)
		if produced, own = next(msg); own == nil && len(produced) > 0 {
			return errUnpublished // the router may fail to, and then the message has to be handled again
		}
		return own
	}, d.ofHandler(message.HandlerNameFromCtx(outside))...)
	switch out.Reason {
	case adapter.Done:
		return produced, own // as the handler returned them
	case adapter.Duplicate:
		return nil, nil
	case adapter.BadKey:
		if errors.Is(out.Err, core.ErrInvalid) {
			return nil, fmt.Errorf("%w: %w", ErrKey, out.Err)
		}
		return nil, out.Err
	case adapter.Lost:
		return nil, errors.Join(own, out.Err)
	default:
		return nil, out.Err
	}
}

// errUnpublished leaves no dedup marker.
var errUnpublished = errors.New("what the handler returned is not published yet")

// ofHandler is what only a message says: the handler's name, empty without a router. It is a part of the holder's label, and the
// scope of a dedup marker unless somebody has chosen another one.
func (d *lock) ofHandler(name string) (opts []core.Option) {
	if name != "" {
		opts = append(opts, core.WithOperation(name))
	}
	if name != "" && d.scoped {
		opts = append(opts, core.WithDedupScope(name))
	}
	return opts
}
