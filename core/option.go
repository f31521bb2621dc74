package core

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Option configures a [Locker], one call of it, or one rule of a middleware. Every middleware accepts the same
// options.
//
// The nearest one wins: first an option of the call or the rule, then one of [Locker.With], then
// one of [New], then the default. Within one list the last one wins.
//
// Durations are cut to whole milliseconds. A duration that is negative, above ten years, or above 0
// but below a millisecond is [ErrInvalid], before anything is sent. Each option says what 0 means.
type Option interface {
	NewOption
	anywhere()
}

// NewOption configures what all Lockers of one [New] share. Every [Option] is a NewOption too.
type NewOption interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

func (optionFunc) anywhere() {}

type newOptionFunc func(*config)

func (f newOptionFunc) apply(c *config) { f(c) }

// Options is several options as one. [New] treats it as if they stood in its place.
func Options(opts ...NewOption) NewOption {
	return newOptionFunc(func(c *config) { apply(c, opts) })
}

func apply[O NewOption](c *config, opts []O) {
	for _, o := range opts {
		if any(o) == nil {
			c.check(invalidf("option: nil"))
			return
		}
		o.apply(c)
	}
}

func defaults() config {
	process := thisProcess()
	c := config{wait: WaitForever, process: process, maxLeases: defaultMaxLeases, maxWaiters: defaultMaxWaiters}
	c.TTL, c.Label = defaultTTL, labelOf(process, "")
	return c
}

// with returns c changed by opts, and checked against what this backend can do.
func with[O NewOption](c *config, opts []O, can driver.Capabilities) (*config, error) {
	next := *c
	apply(&next, opts)
	if next.err != nil {
		return nil, next.err
	}
	if !next.labelled && next.operation != c.operation {
		next.Label = labelOf(next.process, next.operation)
	}
	if err := next.relations(can); err != nil {
		return nil, err
	}
	return next.settled(), nil
}

// WaitForever makes Acquire wait until its ctx ends. See [WithWait].
const WaitForever time.Duration = math.MaxInt64

// WithTTL sets how long the backend keeps a grant that nobody renews. It is also how long a name
// stays taken after its holder has died.
//
// The default is 10 s. The minimum is 100 ms, and more on some backends; 0 is [ErrInvalid]. A
// watchdog renews the lease, so the TTL does not have to cover the work: choose how long a crash
// may block others. The TTL does not limit how long a lease is held; [WithMaxHold] does.
func WithTTL(d time.Duration) Option {
	return optionFunc(func(c *config) { c.TTL = c.duration("WithTTL", d) })
}

// WithWait sets the wait budget of Acquire, Do, DoValue and Wrap: how long they wait for a name
// that someone else holds. After that they return [ErrHeld].
//
// The default is [WaitForever], until ctx ends. Middleware has defaults of its own. 0 tries once. One
// attempt may use its own time limit, a third of the TTL and at most 2 s, even if the budget is
// smaller. The budget does not limit the work.
func WithWait(d time.Duration) Option {
	return optionFunc(func(c *config) {
		if d == WaitForever {
			c.wait = WaitForever
			return
		}
		c.wait = c.duration("WithWait", d)
	})
}

// WithRenewEvery sets how often the watchdog renews a lease.
//
// The default, which 0 also means, is a third of the TTL. The maximum is two thirds, because a
// renewal needs time to be answered before the lease ends. WithRenewEvery turns the watchdog on
// again if an earlier [WithoutRenewal] had turned it off.
func WithRenewEvery(d time.Duration) Option {
	return optionFunc(func(c *config) {
		c.renewEvery = c.duration("WithRenewEvery", d)
		c.NoRenewal = false
	})
}

// WithoutRenewal turns the watchdog off: the lease ends when its TTL is over, whatever the work
// does. By default the watchdog is on, and a later [WithRenewEvery] turns it on again.
func WithoutRenewal() Option {
	return optionFunc(func(c *config) { c.NoRenewal = true })
}

// WithMaxHold limits how long a lease is held, counted from the grant. After that time its context
// ends with [ReasonMaxHold], and renewal stops. Work that ignores its context then keeps the name
// for at most one more TTL.
//
// The default, which 0 also means, is no limit, everywhere.
func WithMaxHold(d time.Duration) Option {
	return optionFunc(func(c *config) {
		c.Turn.MaxHold = c.duration("WithMaxHold", d)
	})
}

// WithMinHold keeps the name taken until d after the grant, however early the lease is released.
// With it, a job that many nodes start at the same minute runs once, even if their clocks differ a
// little. Until d is over, the others get [ErrHeld], and its RetryAfter is exact.
//
// The default, which 0 also means, is no such time. The backend keeps the name for d from the grant
// on, so d also applies if the lease is lost or the process dies. If Acquire gives a lease back
// because its caller has gone, nothing is kept. But a grant whose answer never arrived keeps its
// name if clean-up cannot reach the backend.
//
// It does not change how long the lease is trusted, and it has no effect in a re-entry.
// [WithShared] and [WithLimit] with it are [ErrInvalid].
func WithMinHold(d time.Duration) Option {
	return optionFunc(func(c *config) { c.MinHold = c.duration("WithMinHold", d) })
}

// WithShared asks for the read side of a read-write lock. Any number of shared leases can hold the
// name together, but never beside an exclusive one. Waiting writers are not starved: later readers
// wait behind them.
//
// A reader's fence is larger than that of the last writer before it, and smaller than that of the
// next writer. So it says that the reader reads nothing older than what that last writer wrote.
// Callers that are refused see no label.
//
// The default is exclusive. WithShared and [WithLimit] replace each other; WithLimit(1) makes the
// lease exclusive again. Inside an exclusive lease you can re-enter its name with WithShared.
// Inside a shared lease you cannot re-enter it without: that is [ErrInvalid].
func WithShared() Option {
	return optionFunc(func(c *config) { c.Limit = driver.Readers })
}

// WithLimit makes the name a semaphore: up to n leases with it hold the name together, never beside
// one without it. Each lease has its own TTL, so a holder that dies costs the others one place for
// one TTL. There is no fence, because the holders have no order. Callers that are refused see no
// label.
//
// The default is exclusive, and so is n = 1. n below 1 or above a million is [ErrInvalid]. If the
// holders and the caller give different limits, the smallest one counts. A caller that gave a
// larger one learns of it by [EventLimited]. WithLimit and [WithShared] replace each other.
// Inside a lease you can re-enter the name with the same limit only; any other limit is
// [ErrInvalid].
func WithLimit(n int) Option {
	return optionFunc(func(c *config) {
		if n < 1 || n > maxLimit {
			c.check(invalidf("WithLimit(%d): not between 1 and %d", n, maxLimit))
		}
		c.Limit = n
	})
}

// WithDedup makes finished work stay finished. Work has finished when Do's function has returned
// nil, or when [Lease.Complete] was called, or [Lease.Finish] with nil. For the time of window,
// claims with the same name and scope then get [ErrDuplicate].
//
// The default, which 0 also means, is off. Only claims with WithDedup look for the marker. Dedup is
// at-least-once, not exactly-once: work that crashes after its effect and before the marker runs
// again.
func WithDedup(window time.Duration) Option {
	return optionFunc(func(c *config) { c.Dedup = c.duration("WithDedup", window) })
}

// WithDedupScope names what [WithDedup] counts as the same work, so that "pay" and "refund" of one
// order do not stand for each other. It has no effect without WithDedup, and it never changes which
// leases exclude each other.
//
// The default, which "" also means, is the middleware's operation (route, method or task type), and none
// in core. The limit is 512 bytes of UTF-8 without control characters.
func WithDedupScope(s string) Option {
	return optionFunc(func(c *config) {
		c.Scope = s
		c.check(checkText("WithDedupScope", s, maxScope))
	})
}

// UnavailablePolicy says what an acquire does if the lock service cannot answer; see
// [OnUnavailable].
type UnavailablePolicy uint8

// The policies of [OnUnavailable].
const (
	// FailClosed: the work does not run. The error is [ErrUnavailable].
	FailClosed UnavailablePolicy = iota
	// LocalOnly: the work runs, and excludes other work in this process only. After an attempt that had
	// no answer, other acquires that would have waited no longer than that go local at once, for one second. In that time they ask the
	// lock service in the background, at most four times a second, and only while acquires come in.
	// Its first answer ends that.
	LocalOnly
)

// OnUnavailable says what an acquire does if the lock service cannot answer. With [LocalOnly] it
// gets a degraded lease, which excludes only the other leases of this process: see [Lease.Degraded]. Use it for work that
// is better done twice than not at all. It needs a driver that can grant without the service:
//
//	locks, err := core.New(fallback.New(redislock.New(rdb)), core.OnUnavailable(core.LocalOnly))
//
// An acquire goes local after one attempt that nobody answers: a dial that fails, a connection that
// breaks, silence, or a server that says that it is loading, read-only or without a leader. Silence
// takes a third of the TTL, at most 2 s. Everything else fails closed: wrong types, missing
// permissions, unknown replies, the end of ctx, and for one TTL a name that the service has called held. The first answer
// ends it: later acquires get a real lease, and wait for the degraded one too.
//
// A lease that is held when the service fails does not change: it is lost when its trust ends.
//
// The default is [FailClosed]; the last one wins. LocalOnly together with [WithDedup],
// [WithMinHold], [WithShared] or [WithLimit], which only the service can keep, is [ErrInvalid], and so is a driver that is not
// wrapped. [Locker.Campaign] always fails closed, because otherwise each process would have a leader. See
// docs/operate/running.md.
func OnUnavailable(p UnavailablePolicy) Option {
	return optionFunc(func(c *config) {
		if p > LocalOnly {
			c.check(invalidf("OnUnavailable(%d): neither FailClosed nor LocalOnly", p))
		}
		c.onOutage = p
	})
}

// WithLabel stores a readable note beside the token. Callers that find the name held see it in
// [HeldError], and so do operators, so it must not hold a secret.
//
// The default says who has the name: host and process, and what a middleware does it for, such as
// "web-7:4711 POST /orders/:id/pay". It has 96 bytes at most. WithLabel replaces it, and "" turns it
// off. The limit is 256 bytes of UTF-8 without control characters.
func WithLabel(s string) Option {
	return optionFunc(func(c *config) {
		c.Label, c.labelled = s, true
		c.check(checkText("WithLabel", s, maxLabel))
	})
}

// WithOperation says what the lock is taken for: it becomes a part of the default label. Middleware sets it
// to the route, the method or the task type. It has no effect beside [WithLabel].
//
// The default, which "" also means, is none. What does not fit into the label is cut off, and
// characters that a label cannot have are replaced.
func WithOperation(s string) Option {
	return optionFunc(func(c *config) { c.operation = s })
}

// WithoutReentry turns re-entry off for a call. By default, acquiring a name inside the context of
// a live lease of the same name, from the same root Locker, joins that lease. With this option the
// call asks for a lease of its own. Inside a lease that keeps the name from it, it waits for itself, and
// gets [ErrHeld] when its wait budget or ctx ends.
//
// A lease that has joined another one has the fence, the TTL and the renewal of the outer lease, so
// options about those have no effect on it. It ends by its own Release. Siblings wait for that, and
// for the end of all that has joined it.
func WithoutReentry() Option {
	return optionFunc(func(c *config) { c.noReentry = true })
}

// WithTemplate sets a name of low cardinality, which metrics and logs use instead of the lock's
// name. Observers get both. Middleware sets it to its key template.
//
// The default is none. The limit is 512 bytes of UTF-8 without control characters.
func WithTemplate(s string) Option {
	return optionFunc(func(c *config) {
		c.template = s
		c.check(checkText("WithTemplate", s, maxScope))
	})
}

// WithObserver has f told what happens: see [Event]. Each one adds up: all are told, in the order in which they were given. The
// default is none; nil is [ErrInvalid].
func WithObserver(f func(Event)) NewOption {
	return newOptionFunc(func(c *config) {
		if f == nil {
			c.check(invalidf("WithObserver: nil function"))
		}
		c.observers = append(slices.Clip(c.observers), f)
	})
}

// WithWorkContext has f make the context of work that is about to begin, from ctx, such as one with a span. Do, AcquireAll
// and [Lease.Context] give it to the work, and later events about the lease have its values. It is called on
// the caller's goroutine after the grant, with the event [EventAcquired], and not for a re-entry. So it must be quick. If it returns nil or
// panics, the work has ctx.
//
// Each one adds up: the next one gets what the one before has made. The default is none; nil is [ErrInvalid].
func WithWorkContext(f func(ctx context.Context, e Event) context.Context) NewOption {
	return newOptionFunc(func(c *config) {
		if f == nil {
			c.check(invalidf("WithWorkContext: nil function"))
		}
		c.workContexts = append(slices.Clip(c.workContexts), f)
	})
}

// WithLogger says where an operator finds out what happens:
//
//   - leases that were lost, and why;
//   - releases that could not be confirmed;
//   - when the lock service becomes unavailable, and when it is back;
//   - events that were dropped, and functions of observers that panic;
//   - calls that have waited for three TTLs: see [EventLongWait].
//
// In good times there is no line. Lines have templates, and names and labels only with [WithNamesInLogs]. They have the context of
// the call, so that a handler can add its trace. The last one wins. The default is [slog.Default], and nil is no log.
func WithLogger(log *slog.Logger) NewOption {
	return newOptionFunc(func(c *config) { c.logger, c.silent = log, log == nil })
}

// WithNamesInLogs lets the log have the names of locks, and the label of a holder where
// it helps. They come from requests, so they can be personal data, and have millions of values.
//
// The default is that lines have templates only.
func WithNamesInLogs() NewOption {
	return newOptionFunc(func(c *config) { c.names = true })
}

const (
	defaultMaxLeases  = 1_000_000
	defaultMaxWaiters = 100_000
)

// WithMaxLeases limits how many leases the process holds at once, with this Locker and all Lockers
// derived from it. One more acquire gets [ErrUnavailable] at once, without a command; middleware
// then answers 503, Unavailable or a retry. A re-entry does not count, because its lease exists
// already. Calls that ask at the same moment can exceed the limit by as many as they are.
//
// The default is a million, about 600 MB. n below 1 is [ErrInvalid]. The last one wins.
func WithMaxLeases(n int) NewOption {
	return capped("WithMaxLeases", n, func(c *config) { c.maxLeases = n })
}

// WithMaxWaiters limits how many calls of the process may wait at once, for all names together. One
// more gets [ErrUnavailable] at once, without a command. Calls that try once do not count.
//
// The default is 100,000. n below 1 is [ErrInvalid]. The last one wins.
func WithMaxWaiters(n int) NewOption {
	return capped("WithMaxWaiters", n, func(c *config) { c.maxWaiters = n })
}

func capped(option string, n int, set func(*config)) NewOption {
	return newOptionFunc(func(c *config) {
		if n < 1 {
			c.check(invalidf("%s(%d): below 1", option, n))
		}
		set(c)
	})
}
