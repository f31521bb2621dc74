package core

import (
	"log/slog"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Option configures a [Locker], one call of it, or one rule of a door. Every door accepts
// the same options.
//
// The nearest one wins: first an option of the call or the rule, then of [Locker.With], then of
// [New], then the default. Within one list the last one wins. Durations are refused with
// [ErrInvalid], before anything is sent, if they are negative, below a millisecond (except
// 0 where 0 has a meaning) or above ten years. A fraction of a millisecond is cut off.
type Option interface {
	NewOption
	anywhere()
}

// NewOption configures what all Lockers of one [New] share. Every [Option] is one, too.
type NewOption interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

func (optionFunc) anywhere() {}

type newOptionFunc func(*config)

func (f newOptionFunc) apply(c *config) { f(c) }

func defaults() config {
	return config{
		ttl: defaultTTL, wait: WaitForever,
		maxLeases: defaultMaxLeases, maxWaiters: defaultMaxWaiters,
	}
}

// with returns c changed by opts, checked for this backend.
func with[O NewOption](c *config, opts []O, can driver.Capabilities) (*config, error) {
	next := *c
	for _, o := range opts {
		if any(o) == nil {
			return nil, invalidf("option: nil")
		}
		o.apply(&next)
	}
	if next.err != nil {
		return nil, next.err
	}
	if err := next.relations(can); err != nil {
		return nil, err
	}
	return &next, nil
}

// WaitForever makes Acquire wait until its ctx ends; see [WithWait].
const WaitForever time.Duration = math.MaxInt64

// WithTTL sets how long the backend keeps a tenure that nobody renews. It is also how long
// a name stays taken after its holder has died.
//
// The default is 10 s, the minimum 100 ms; zero is invalid. Since a watchdog renews, the
// TTL does not have to cover the work: choose how long a crash may block others. It does
// not bound how long a lease is held; [WithMaxHold] does.
func WithTTL(d time.Duration) Option {
	return optionFunc(func(c *config) { c.ttl = c.duration("WithTTL", d) })
}

// WithWait sets the wait budget of Acquire, Do, DoValue and Wrap: how long they wait for a
// name that someone else holds before they return [ErrHeld].
//
// The default is [WaitForever], until ctx ends; doors have defaults of their own. Zero
// tries once. One attempt may take until its own bound, a third of the TTL and at most
// 2 s, even where the budget is smaller. It does not bound the work.
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
// The default, also chosen by zero, is a third of the TTL. The maximum is two thirds: an
// attempt needs time to be answered while the lease still stands. It turns the watchdog
// on again where an earlier [WithoutRenewal] had turned it off.
func WithRenewEvery(d time.Duration) Option {
	return optionFunc(func(c *config) {
		c.renewEvery = c.duration("WithRenewEvery", d)
		c.noRenewal = false
	})
}

// WithoutRenewal turns the watchdog off: the lease ends at its TTL, whatever the work
// does. The default is off; a later [WithRenewEvery] turns it back on.
func WithoutRenewal() Option {
	return optionFunc(func(c *config) { c.noRenewal = true })
}

// WithMaxHold bounds how long a lease is held, counted from the grant. Then its context
// ends with [ReasonMaxHold] and renewal stops, so that work which does not listen keeps
// the name for one more TTL at most.
//
// The default, also chosen by zero, is no bound, everywhere.
func WithMaxHold(d time.Duration) Option {
	return optionFunc(func(c *config) {
		c.maxHold = c.duration("WithMaxHold", d)
	})
}

// WithMinHold keeps the name taken until d after the grant, however early the lease is
// released: so a job that many nodes start at the same minute, by clocks that differ a
// little, runs once. By then the others get [ErrHeld], whose RetryAfter says exactly when
// the name comes free.
//
// The default, also chosen by zero, is no such time. It holds for a lease that is lost, and
// for a process that dies, too: the backend is asked to keep the name for so long from the
// start. A lease that Acquire gives back, since its caller has gone, keeps nothing; one whose
// grant never arrived, as the network failed, does, where clean-up cannot reach the backend.
// It says nothing about how long the lease is trusted, and does nothing in a re-entry. Leases
// that share a name, by [WithShared] or [WithLimit], cannot have it: that is [ErrInvalid].
func WithMinHold(d time.Duration) Option {
	return optionFunc(func(c *config) { c.minHold = c.duration("WithMinHold", d) })
}

// WithShared asks for the read side of a read-write lock: any number of leases with it hold the
// name together, and none of them beside one without it. Who waits to write is not starved:
// readers that come later wait behind it. The fence of a reader says that it reads nothing
// older than what the last writer before it wrote: it is larger than that writer's, and smaller
// than the next one's. Those who are refused see no label.
//
// The default is exclusive. WithShared and [WithLimit] replace each other; WithLimit(1) makes
// the lease exclusive again. Inside a lease, a name that is held exclusively can be re-entered
// with it, but one that is shared cannot be re-entered without: that is [ErrInvalid].
func WithShared() Option {
	return optionFunc(func(c *config) { c.shared, c.limit = true, 0 })
}

// WithLimit makes the name a semaphore: up to n leases with it hold the name together, none
// of them beside one without it. Each has a time of its own, so who dies costs the others one
// place for one TTL. There is no fence, as there is no order among them. Those who are refused
// see no label.
//
// The default, which 1 chooses too, is exclusive; n below 1 is invalid, and so is more than a
// million. While those who want a name give different limits, the smallest one among its
// holders and the one who asks counts, and who gave a larger one is told by
// [Observer.Limited]. WithLimit and [WithShared] replace each other. Inside a lease the name
// can be re-entered with the same limit only; any other is [ErrInvalid].
func WithLimit(n int) Option {
	return optionFunc(func(c *config) {
		if n < 1 || n > maxLimit {
			c.check(invalidf("WithLimit(%d): not between 1 and %d", n, maxLimit))
		}
		c.shared, c.limit = false, n
	})
}

// WithDedup makes finished work stay finished: once work has succeeded, by a Do that returned nil
// or by [Lease.Complete], claims with the same name and scope get [ErrDuplicate] for the
// time of window.
//
// The default, also chosen by zero, is off. Only claims that ask for dedup look for the
// marker. Work that crashes after its effect and before it completes is run again: the
// marker is at-least-once, not exactly-once.
func WithDedup(window time.Duration) Option {
	return optionFunc(func(c *config) { c.dedup = c.duration("WithDedup", window) })
}

// WithDedupScope names what [WithDedup] counts as the same work, so that "pay" and
// "refund" of one order do not stand for each other. It does nothing without WithDedup,
// and never changes what excludes what.
//
// The default, also chosen by "", is the door's operation (route, method, task type), and none in
// core. At most 512 bytes of UTF-8 without control characters.
func WithDedupScope(s string) Option {
	return optionFunc(func(c *config) {
		c.scope = s
		c.check(checkText("WithDedupScope", s, maxScope))
	})
}

// OnUnavailable says what an acquire does if the lock service cannot answer. With [LocalOnly]
// it gets a lease that excludes all other leases of this Locker, and of those derived from it,
// but nobody else: [Lease.Degraded] is true, the fence is 0, and [Observer.Degraded] is told.
// It is for work that is better done twice than not at all.
//
// An acquire goes local after one attempt, which takes a third of the TTL and at most 2 s if
// there is silence, and no time if nothing listens. While that is no longer ago than a second,
// and later work asks in the background at most four times a second, the others go local at once.
// The first answer ends that: what is acquired then is a real lease again, and waits for the
// degraded one of the same name too.
//
// It acts only on what means that nobody gets an answer: a dial that fails, a connection that
// breaks, silence, a server that says that it is loading, read-only or without a leader. An
// acquire to which the backend has said "held" fails closed, and so does one that meets
// anything else: wrong types, missing permissions, unknown replies, the end of ctx. A lease
// that is held when the service goes is not changed by it: it is lost at the end of its trust.
//
// A degraded lease has no TTL. It ends by its release, by [WithMaxHold], by Close, and, with
// [WithoutRenewal], after as much time as a TTL. Its release sends nothing, [Confirm] trusts it,
// and [Lease.Check], which asks the service, is ErrUnavailable. A re-entry joins it, whatever
// its own policy. [Locker.Campaign] always fails closed: it would make a leader of each process.
//
// The default is FailClosed; of a repeat the last one counts. LocalOnly together with
// [WithDedup], [WithMinHold], [WithShared] or [WithLimit], which only the service can keep, is
// [ErrInvalid].
func OnUnavailable(p UnavailablePolicy) Option {
	return optionFunc(func(c *config) {
		if p > LocalOnly {
			c.check(invalidf("OnUnavailable(%d): neither FailClosed nor LocalOnly", p))
		}
		c.unavailable = p
	})
}

// WithLabel stores a readable note beside the token, such as a host name. Those who find
// the name held see it in [HeldError], so it should hold no secret.
//
// The default is none. At most 256 bytes of UTF-8 without control characters.
func WithLabel(s string) Option {
	return optionFunc(func(c *config) {
		c.label = s
		c.check(checkText("WithLabel", s, maxLabel))
	})
}

// WithoutReentry makes a call wait for its own lease. Without it, acquiring a name inside the context
// of a live lease of the same name, from the same root Locker, joins that lease.
//
// The default is to join. With this option, code that locks its own name again waits for itself
// until its ctx ends. An inner lease ends by its own Release. It has the fence, the TTL
// and the renewal of the outer one, so options about those do nothing there.
func WithoutReentry() Option {
	return optionFunc(func(c *config) { c.noReentry = true })
}

// WithTemplate sets the low-cardinality name that observers, metrics and logs see instead
// of the lock's name. Doors set it to their key template.
//
// The default is none. At most 512 bytes of UTF-8 without control characters.
func WithTemplate(s string) Option {
	return optionFunc(func(c *config) {
		c.template = s
		c.check(checkText("WithTemplate", s, maxScope))
	})
}

// WithObserver has o told what happens; see [Observer]. The last one wins. The default is none.
func WithObserver(o Observer) NewOption {
	return newOptionFunc(func(c *config) { c.observer = &o })
}

// WithLogger logs what an operator should know: leases that were lost, and why; releases that
// could not be confirmed; when the lock service becomes unavailable, and when it is back; events
// that were dropped. Lines have templates, never names or labels, and the context of the call,
// for handlers that add its trace. The last one wins. The default, also chosen by nil, is silence.
func WithLogger(log *slog.Logger) NewOption {
	return newOptionFunc(func(c *config) { c.logger = log })
}

const (
	defaultMaxLeases  = 1_000_000
	defaultMaxWaiters = 100_000
)

// WithMaxLeases bounds how many leases the process holds at once, with all Lockers that are
// derived from this one. Who asks for one more gets [ErrUnavailable] at once, without a command:
// the doors answer 503, Unavailable, and a retry. A re-entry, which has its lease already, does
// not count. Those who ask at the same moment can go over it by as many as they are.
//
// The default is a million, about 600 MB; n below 1 is [ErrInvalid]. The last one wins.
func WithMaxLeases(n int) NewOption {
	return capped("WithMaxLeases", n, func(c *config) { c.maxLeases = n })
}

// WithMaxWaiters bounds how many calls of the process may wait at once, for whatever names: one
// more gets [ErrUnavailable] at once, without a command. Calls that try once do not count.
//
// The default is 100,000; n below 1 is [ErrInvalid]. The last one wins.
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
