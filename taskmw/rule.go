package taskmw

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/coalesce"
)

// Rule says how the tasks of a type are locked. It is an [Option] of the middleware. Make it with [WithType] or
// [WithTypeFunc].
type Rule struct {
	pattern string
	key     func() (adapter.Key[*asynq.Task], error)
	action  Action
	opts    []core.Option
}

// WithType locks the tasks of a type by a key such as "order:{order_id}". The package documentation
// lists the sources of a key.
//
// A task that needs several names at once has several templates, with a space between them. Such a
// rule cannot have [Skip] or [Coalesce], and [Enqueue] cannot hand off to it.
//
// A pattern is a task type, or a prefix followed by "*": "order:*", or "*" for all. The exact type
// wins over prefixes, and a longer prefix over a shorter one, in any order. The same pattern twice is
// an error.
//
// By default the middleware does not wait for a held name: asynq retries the task. With
// [core.WithWait] it waits that long first, or as long as the task's own time allows. [Rule.OnConflict] chooses another
// action. On a task's last attempt it waits as long as the task's own time allows, whatever WithWait
// says. So asynq.Timeout must cover waiting and work, and a worker is busy meanwhile.
//
// The default scope of [core.WithDedup] is the type of the current task. [core.WithLabel] does
// nothing, because the middleware sets the label.
func WithType(pattern, key string, opts ...core.Option) Rule {
	return Rule{pattern, func() (adapter.Key[*asynq.Task], error) { return adapter.NewKey(key, sources.Source) }, Retry, opts}
}

// WithTypeFunc is [WithType] with a function that returns the name to lock. Use key.Key's Name, of
// package core/key, for values that come from outside: it gives different values different names.
//
//	orderKey := key.MustParse("order:{tenant}:{id}") // Name keeps ("a:b", "c") and ("a", "b:c") apart
//
// If key returns an error, the handler does not run. An error that matches [core.ErrInvalid] archives
// the task. Any other error is returned unchanged, so asynq retries the task unless the error wraps
// asynq.SkipRetry. Observers see the pattern instead of a key template.
func WithTypeFunc(pattern string, key func(context.Context, *asynq.Task) (string, error), opts ...core.Option) Rule {
	return Rule{pattern, func() (adapter.Key[*asynq.Task], error) { return adapter.KeyFunc(pattern, key) }, Retry, opts}
}

// OnConflict returns the rule with another action for tasks that find their name held. The default is [Retry]. The last
// one wins. An unknown Action is an error of [New].
//
// With [core.WithWait] the task first waits that long. Coalesce ignores it, because it waits
// anyway. On a task's last attempt the task waits instead of a retry.
func (r Rule) OnConflict(a Action) Rule {
	r.action = a
	return r
}

// rule is a Rule made ready.
type rule struct {
	*adapter.Rule[*asynq.Task]

	prefix string // of the types that match, or the one type
	many   bool   // the pattern ends in *
	action Action
	group  *coalesce.Group // for Coalesce
	byType []core.Option   // the rule's own, if the default dedup scope is known only when a task is
}

func (r Rule) apply(m *middleware) error {
	compiled, err := r.compile(m)
	if err != nil {
		return fmt.Errorf("rule for %q: %w", r.pattern, err)
	}
	m.rules = append(m.rules, compiled)
	return nil
}

// checkPattern refuses what no task type can be, or no log.
func checkPattern(pattern, prefix string) error {
	isControl := func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }
	if strings.TrimSpace(pattern) == "" || strings.Contains(prefix, "*") || strings.ContainsFunc(prefix, isControl) {
		return fmt.Errorf("%w: a pattern is a task type, or a prefix and one * at its end, "+
			"in UTF-8 without control characters", core.ErrInvalid)
	}
	return nil
}

func (r Rule) compile(m *middleware) (*rule, error) {
	prefix, many := strings.CutSuffix(r.pattern, "*")
	if err := checkPattern(r.pattern, prefix); err != nil {
		return nil, err
	}
	isRepeat := func(other *rule) bool { return other.prefix == prefix && other.many == many }
	if slices.ContainsFunc(m.rules, isRepeat) {
		return nil, fmt.Errorf("%w: the pattern has a rule already", core.ErrInvalid)
	}
	k, err := r.key()
	if err != nil {
		return nil, err
	}
	defaults := []core.Option{core.WithWait(0), core.WithDedupScope(part(r.pattern, ""))}
	locks, err := adapter.NewRule(m.locks, k, slices.Concat(defaults, r.opts)...)
	if err != nil {
		return nil, err
	}
	compiled := &rule{Rule: locks, prefix: prefix, many: many, action: r.action}
	window, _ := locks.Locker().Dedup()
	if many && window > 0 {
		compiled.byType = r.opts
	}
	switch several := strings.Contains(k.String(), " "); {
	case r.action > Coalesce:
		return nil, fmt.Errorf("%w: OnConflict(%d): there are Retry, Skip and Coalesce", core.ErrInvalid, r.action)
	case several && (r.action == Skip || r.action == Coalesce):
		return nil, fmt.Errorf("%w: Skip or Coalesce, not with several keys: a task that has one of them does other work", core.ErrInvalid)
	case r.action == Coalesce:
		if compiled.group, err = coalesce.New(locks.Locker()); err != nil {
			return nil, fmt.Errorf("OnConflict(Coalesce): %w", err)
		}
	}
	return compiled, nil
}

// scope is the default of a pattern that several types match, and what the rule itself says of it.
func (r *rule) scope(t *asynq.Task) []core.Option {
	if r.byType == nil {
		return nil
	}
	return append([]core.Option{core.WithDedupScope(part(t.Type(), ""))}, r.byType...)
}
