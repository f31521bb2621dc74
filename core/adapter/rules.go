package adapter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Rules are rules by the name of what they are for, such as a kind of job. Once all are added it is safe for concurrent use.
type Rules[R any] struct {
	locks *core.Locker
	named map[string]*Rule[R]
}

// NewRules returns no rules yet. A nil Locker is [core.ErrInvalid].
func NewRules[R any](l *core.Locker) (*Rules[R], error) {
	_, err := l.With()
	return &Rules[R]{l, make(map[string]*Rule[R])}, err
}

// Of returns the rule of a name, nil if there is none.
func (s *Rules[R]) Of(name string) *Rule[R] { return s.named[name] }

// Add adds a rule with a key of templates, see [NewKey]. By default it does not wait, and its name is the scope of
// [core.WithDedup]. What cannot work is [core.ErrInvalid], and so is a name that is empty, or has a rule.
func (s *Rules[R]) Add(name, templates string, sources Sources[R], opts ...core.Option) error {
	k, err := NewKey(templates, sources)
	return s.add(name, k, err, opts)
}

// AddFunc is Add with a [KeyFunc].
func (s *Rules[R]) AddFunc(name string, key func(context.Context, R) (string, error), opts ...core.Option) error {
	k, err := KeyFunc(name, key)
	return s.add(name, k, err, opts)
}

func (s *Rules[R]) add(name string, k Key[R], err error, opts []core.Option) error {
	if strings.TrimSpace(name) == "" || s.named[name] != nil {
		err = fmt.Errorf("%w: the name is empty, or has a rule already", core.ErrInvalid)
	}
	if err == nil {
		s.named[name], err = NewRule(s.locks, k, append([]core.Option{core.WithWait(0), core.WithDedupScope(name)}, opts...)...)
	}
	if err != nil {
		return fmt.Errorf("rule for %q: %w", name, err)
	}
	return nil
}

// Apply applies options to what they are for. A nil one is [core.ErrInvalid].
func Apply[T any, O ~func(*T) error](to *T, opts []O) error {
	for _, o := range opts {
		if o == nil {
			return fmt.Errorf("%w: nil option", core.ErrInvalid)
		}
		if err := o(to); err != nil {
			return err
		}
	}
	return nil
}

// Must is for programs that cannot run without what a constructor makes: it panics on an error.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err.Error())
	}
	return v
}

// Spread is d, up to a fifth shorter or longer, so that those who wait do not come again all at once.
func Spread(d time.Duration) time.Duration {
	return d - d/5 + rand.N(2*(d/5)+1) //nolint:gosec // G404: jitter is no secret
}
