package core

import (
	"context"
	"log/slog"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/term"
)

const (
	defaultTTL  = 10 * time.Second
	minTTL      = 100 * time.Millisecond
	maxDuration = 10 * 365 * 24 * time.Hour
	maxLabel    = driver.MaxLabel
	maxScope    = 512
	maxLimit    = 1_000_000
)

// config is what the options add up to. A resolved config never changes again, because leases point
// at it.
type config struct {
	terms hold.Terms // what the rest comes to for the rooms: see settled

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
	onOutage   UnavailablePolicy
	campaigns  bool   // to wait for long is normal
	handoff    string // hash of the hand-off to take the name over with

	maxLeases  int
	maxWaiters int

	observers    []func(Event)
	logger       *slog.Logger // nil: slog.Default
	silent       bool         // no log
	names        bool         // in the log
	workContexts []func(context.Context, Event) context.Context

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
	return c.localRelations(can)
}

// localRelations checks that nothing is asked for that a process cannot keep by itself.
func (c *config) localRelations(can driver.Capabilities) error {
	var option string
	switch {
	case c.onOutage == FailClosed:
		return nil
	case !can.Degrade:
		return invalidf("OnUnavailable(LocalOnly): not with the %s backend alone: wrap the driver with fallback.New", can.Backend)
	case c.dedup > 0:
		option = "WithDedup"
	case c.minHold > 0:
		option = "WithMinHold"
	case c.shared:
		option = "WithShared"
	case c.limit > 1:
		option = "WithLimit"
	default:
		return nil
	}
	return invalidf("OnUnavailable(LocalOnly): not with %s, which only the lock service can keep", option)
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

// settled is c, resolved.
func (c config) settled() *config {
	limit := c.limit
	if c.shared {
		limit = driver.Readers
	}
	c.terms = hold.Terms{
		Wish: claim.Wish{
			Label: c.label, TTL: c.ttl, Limit: limit, Scope: c.scope, Dedup: c.dedup,
			MinHold: c.minHold, NoRenewal: c.noRenewal, Handoff: c.handoff,
			Degrade: c.onOutage == LocalOnly && !c.campaigns, // otherwise each process would have a leader
		},
		Turn: term.Turn{Every: c.period(), MaxHold: c.maxHold},
	}
	return &c
}

// once is c for a call that does not wait.
func (c *config) once() *config {
	d := *c
	d.wait = 0
	return &d
}
