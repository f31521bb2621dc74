package core

import (
	"context"
	"log/slog"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core/driver"
)

const (
	defaultTTL  = 10 * time.Second
	minTTL      = 100 * time.Millisecond
	maxDuration = 10 * 365 * 24 * time.Hour
	maxLabel    = driver.MaxLabel
	maxScope    = 512
	maxLimit    = 1_000_000

	maxTimeout = 2 * time.Second // of one attempt
	minDrift   = 2 * time.Millisecond
)

// config is what the options add up to. A resolved config never changes again, because leases point
// at it.
type config struct {
	ttl        time.Duration
	wait       time.Duration
	renewEvery time.Duration // 0: a third of ttl
	noRenewal  bool
	maxHold    time.Duration
	minHold    time.Duration
	shared     bool
	limit      int // more than 1: a semaphore
	dedup      time.Duration
	scope      string
	label      string
	labelled   bool   // by WithLabel; otherwise label is the default
	process    string // the default label's first part
	operation  string // its second one
	template   string
	noReentry  bool
	campaigns  bool // to wait for long is normal

	maxLeases   int
	maxWaiters  int
	unavailable UnavailablePolicy

	observer *Observer
	logger   *slog.Logger
	names    bool // in the log

	err error // the first thing an option found wrong
}

// relations checks what no option can check alone.
func (c *config) relations(can driver.Capabilities) error {
	if c.ttl < max(minTTL, can.MinTTL) {
		return invalidf("WithTTL(%s): below the minimum of %s", c.ttl, max(minTTL, can.MinTTL))
	}
	if !c.noRenewal && c.renewEvery > c.ttl*2/3 {
		return invalidf("WithRenewEvery(%s): more than two thirds of WithTTL(%s)", c.renewEvery, c.ttl)
	}
	if err := c.supported(can); err != nil {
		return err
	}
	if c.minHold > 0 && c.together() {
		return invalidf("WithMinHold(%s): not with WithShared or WithLimit, which leave the name to others", c.minHold)
	}
	return c.localRelations()
}

// supported checks that the backend can do what is asked for.
func (c *config) supported(can driver.Capabilities) error {
	switch {
	case c.dedup > 0 && !can.Dedup:
		return lacks(can, "WithDedup")
	case c.minHold > 0 && !can.Keep:
		return lacks(can, "WithMinHold")
	case c.shared && !can.Shared:
		return lacks(can, "WithShared")
	case c.limit > 1 && !can.Limit:
		return lacks(can, "WithLimit")
	default:
		return nil
	}
}

// localRelations checks that nothing is asked for that a process cannot keep by itself.
func (c *config) localRelations() error {
	option := ""
	switch {
	case c.unavailable == FailClosed:
	case c.dedup > 0:
		option = "WithDedup"
	case c.minHold > 0:
		option = "WithMinHold"
	case c.shared:
		option = "WithShared"
	case c.limit > 1:
		option = "WithLimit"
	}
	if option != "" {
		return invalidf("OnUnavailable(LocalOnly): not with %s, which only the lock service can keep", option)
	}
	return nil
}

// UnavailablePolicy says what an acquire does if the lock service cannot answer; see
// [OnUnavailable].
type UnavailablePolicy uint8

// The policies of [OnUnavailable].
const (
	// FailClosed: the work does not run. The error is [ErrUnavailable].
	FailClosed UnavailablePolicy = iota
	// LocalOnly: the work runs, and excludes other work in this process only. After an attempt that
	// was not answered, other acquires go local at once for one second. In that time they ask the
	// lock service in the background, at most four times a second, and only while acquires come in.
	// Its first answer ends the outage.
	LocalOnly
)

func lacks(can driver.Capabilities, option string) error {
	return invalidf("%s: the %s backend does not support it", option, can.Backend)
}

func (c *config) duration(option string, d time.Duration) time.Duration {
	switch {
	case d < 0:
		c.check(invalidf("%s(%s): negative", option, d))
	case d > maxDuration:
		c.check(invalidf("%s(%s): more than ten years", option, d))
	case d > 0 && d < time.Millisecond:
		c.check(invalidf("%s(%s): below a millisecond", option, d))
	}
	return d.Truncate(time.Millisecond)
}

func (c *config) check(err error) {
	if c.err == nil {
		c.err = err
	}
}

func checkText(option, s string, limit int) error {
	if len(s) > limit {
		return invalidf("%s: %d bytes, more than %d", option, len(s), limit)
	}
	if !utf8.ValidString(s) {
		return invalidf("%s: not UTF-8", option)
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return invalidf("%s: a control character", option)
		}
	}
	return nil
}

func (c *config) failClosed() *config {
	closed := *c
	closed.unavailable = FailClosed
	return &closed
}

// subject allocates, so it is called only if there is an observer or a log.
func (c *config) subject(ctx context.Context, name string) Subject {
	return Subject{c.template, name, context.WithoutCancel(ctx), time.Now()}
}

// period is how often the watchdog renews; 0 if it does not.
func (c *config) period() time.Duration {
	switch {
	case c.noRenewal:
		return 0
	case c.renewEvery > 0:
		return c.renewEvery
	default:
		return c.ttl / 3
	}
}

// together says that others can hold the name at the same time.
func (c *config) together() bool { return c.shared || c.limit > 1 }

// covers says whether a holder of a name by c can re-enter it by d: in the same mode, or in a
// weaker one.
func (c *config) covers(d *config) bool {
	if c.together() || d.limit > 1 {
		return c.shared == d.shared && c.limit == d.limit
	}
	return true
}

// alike says whether a waiter that wants d may have a turn of a tenure that was granted to c. What
// the backend knows of the tenure, and how it is renewed, must be the same.
func (c *config) alike(d *config) bool {
	return c.ttl == d.ttl && c.period() == d.period() && c.label == d.label && c.plain() && d.plain()
}

// plain says that c asks for nothing that a turn cannot give.
func (c *config) plain() bool { return c.dedup == 0 && c.minHold == 0 }

// plainGrant says that a grant of c needs nothing but a free name, and may begin with a short TTL.
// With WithMinHold, a crash would free the name too early.
func (c *config) plainGrant() bool {
	return !c.together() && c.dedup == 0 && c.minHold == 0 && !c.noRenewal
}

// queueKey is the key of the queue, in this process, for callers that want name in this way. It is
// never another name, because no name has a control character.
func (c *config) queueKey(name string) string {
	switch {
	case c.shared:
		return name + "\x00shared"
	case c.limit > 1:
		return name + "\x00" + strconv.Itoa(c.limit)
	default:
		return name
	}
}

// lifetime is how long the backend keeps a new tenure that nobody renews.
func (c *config) lifetime() time.Duration { return max(c.ttl, c.minHold) }

// attemptTimeout is how long one attempt, and one release, may take.
func (c *config) attemptTimeout() time.Duration { return min(c.ttl/3, maxTimeout) }

// renewTimeout is how long one renewal may take.
func (c *config) renewTimeout() time.Duration { return min(c.ttl/5, maxTimeout) }

// recheck is how long a waiter that hears nothing waits before it asks again.
func (c *config) recheck() time.Duration { return min(c.ttl/3, time.Second) }

// trust is how long a grant of ttl is believed, counted from before it was asked for. It is shorter
// than ttl because clocks may run at different rates.
func trust(ttl time.Duration) time.Duration { return ttl - ttl/100 - minDrift }
