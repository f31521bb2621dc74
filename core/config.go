package core

import (
	"cmp"
	"context"
	"log/slog"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/hold"
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
	hold.Terms // Degrade and Turn.Every are what the rest comes to: see settled

	wait       time.Duration
	renewEvery time.Duration // 0: a third of the TTL
	labelled   bool          // by WithLabel; otherwise the label is the default
	process    string        // the default label's first part
	operation  string        // its second one
	template   string
	noReentry  bool
	onOutage   UnavailablePolicy
	campaigns  bool   // to wait for long is normal
	set        *group // of one AcquireAll

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
	if c.TTL < max(minTTL, can.MinTTL) {
		return invalidf("WithTTL(%s): below the minimum of %s", c.TTL, max(minTTL, can.MinTTL))
	}
	if !c.NoRenewal && c.renewEvery > c.TTL*2/3 {
		return invalidf("WithRenewEvery(%s): more than two thirds of WithTTL(%s)", c.renewEvery, c.TTL)
	}
	if c.MinHold > 0 && c.Together() {
		return invalidf("WithMinHold(%s): not with WithShared or WithLimit, which leave the name to others", c.MinHold)
	}
	if c.onOutage == LocalOnly && !can.Degrade {
		return invalidf("OnUnavailable(LocalOnly): not with the %s backend alone: wrap the driver with fallback.New", can.Backend)
	}
	return c.supported(can)
}

// supported checks what not every backend can do, and a process cannot do without one.
func (c *config) supported(can driver.Capabilities) error {
	for _, x := range []struct {
		option     string
		asked, can bool
	}{
		{"WithDedup", c.Dedup > 0, can.Dedup},
		{"WithMinHold", c.MinHold > 0, can.Keep},
		{"WithShared", c.Limit == driver.Readers, can.Shared},
		{"WithLimit", c.Limit > 1, can.Limit},
	} {
		switch {
		case x.asked && !x.can:
			return lacks(can, x.option)
		case x.asked && c.onOutage == LocalOnly:
			return invalidf("OnUnavailable(LocalOnly): not with %s, which only the lock service can keep", x.option)
		}
	}
	return nil
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
	c.err = cmp.Or(c.err, err)
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
	case c.NoRenewal:
		return 0
	case c.renewEvery > 0:
		return c.renewEvery
	default:
		return c.TTL / 3
	}
}

// covers says whether a holder of a name by c can re-enter it by d: in the same mode, or in a
// weaker one.
func (c *config) covers(d *config) bool {
	return c.Limit == d.Limit || !c.Together() && d.Limit <= 1
}

// settled is c, resolved.
func (c config) settled() *config {
	c.Degrade = c.onOutage == LocalOnly && !c.campaigns // otherwise each process would have a leader
	c.Turn.Every = c.period()
	return &c
}
