package redislock_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// deed is one thing that a lacker tries, for the claim that begin returns.
type deed struct {
	what         string
	begin        func(x *lacker) driver.Claim
	do           func(ctx context.Context, x *lacker, c driver.Claim) error
	takes, frees bool // what no error means
	queued       bool // somebody stands in line for a free name
}

func taking(what string, begin func(x *lacker) driver.Claim) deed {
	return deed{what: what, begin: begin, takes: true, do: func(ctx context.Context, x *lacker, c driver.Claim) error {
		g, err := x.driver.Acquire(ctx, c)
		if err == nil && c.Exclusive() && g.Fence < 1e15 {
			x.Errorf("%s: fence %d: not of the server's clock", what, g.Fence)
		}
		return err
	}}
}

func renewing(what string, begin func(x *lacker) driver.Claim) deed {
	return deed{what: what, begin: begin, takes: true, do: func(ctx context.Context, x *lacker, c driver.Claim) error {
		return errors.Join(x.driver.Renew(ctx, []driver.Claim{c})...)
	}}
}

func freeing(what string, begin func(x *lacker) driver.Claim) deed {
	return deed{what: what, begin: begin, frees: true, do: func(ctx context.Context, x *lacker, c driver.Claim) error {
		return x.driver.Release(ctx, c)
	}}
}

// evicting takes the name from the holder of the claim.
func evicting(what string, begin func(x *lacker) (driver.Claim, string)) deed {
	var meant string
	return deed{what: what, frees: true, begin: func(x *lacker) (c driver.Claim) {
		c, meant = begin(x)
		x.queue()
		return c
	}, do: func(ctx context.Context, x *lacker, c driver.Claim) error { return x.store.Evict(ctx, c.Name, meant) }}
}

// shown is the handle of the only holder.
func (x *lacker) shown(c driver.Claim) (driver.Claim, string) {
	info, err := x.store.Inspect(x.Context(), c.Name)
	ok(x.T, err)
	if len(info.Holders) == 1 {
		return c, info.Holders[0].Handle
	}
	return c, info.Handle
}

func waiting(what string, begin func(x *lacker) driver.Claim) deed {
	return deed{what: what, begin: begin, takes: true, do: func(ctx context.Context, x *lacker, c driver.Claim) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		defer cancel()
		_, err := x.store.Wait(ctx, c)
		return err
	}}
}

func reader(c *driver.Claim)    { c.Limit = driver.Readers }
func permit(c *driver.Claim)    { c.Limit = 2 }
func dedups(c *driver.Claim)    { c.Dedup = time.Hour }
func kept(c *driver.Claim)      { c.Keep = time.Minute }
func handedOff(c *driver.Claim) { c.Handoff = strings.Repeat("k", driver.HandoffWidth) }
func unrenewed(c *driver.Claim) { c.TTL = 0 }

func with(c driver.Claim, opts ...func(*driver.Claim)) driver.Claim {
	for _, set := range opts {
		set(&c)
	}
	return c
}

func deeds() []deed {
	held := func(x *lacker) { x.has() }
	both := func(x *lacker) { x.has(permit); x.has(permit) }
	var all []deed
	for what, kind := range map[string]func(*driver.Claim){"exclusive": func(*driver.Claim) {}, "shared": reader, "limited": permit} {
		all = append(all,
			taking(what+": a free name", func(x *lacker) driver.Claim { return x.claim(kind) }),
			taking(what+": a name that is held", func(x *lacker) driver.Claim { held(x); return x.claim(kind) }),
			taking(what+": a name that two hold", func(x *lacker) driver.Claim { both(x); return x.claim(kind) }),
			taking(what+": a name with one of its kind", func(x *lacker) driver.Claim { x.has(kind); return x.claim(kind) }),
			taking(what+": again", func(x *lacker) driver.Claim { return x.has(kind) }),
			taking(what+": dedup", func(x *lacker) driver.Claim { return x.claim(kind, dedups) }),
			taking(what+": done", func(x *lacker) driver.Claim {
				ok(x.T, x.store.Release(x.Context(), with(x.has(kind), dedups)))
				return x.claim(kind, dedups)
			}),
			deed{takes: true, queued: true, what: what + ": a free name that another one waits for", begin: func(x *lacker) driver.Claim {
				x.queue()
				return x.claim(kind)
			}, do: taking("", nil).do},
			taking(what+": from the line", func(x *lacker) driver.Claim { held(x); return x.waits(x.claim(kind)) }),
			taking(what+": first in line", func(x *lacker) driver.Claim {
				owner := x.has()
				c := x.waits(x.claim(kind))
				ok(x.T, x.store.Release(x.Context(), owner))
				return c
			}),
			renewing(what+": a renewal", func(x *lacker) driver.Claim { return x.has(kind) }),
			renewing(what+": a check", func(x *lacker) driver.Claim { return with(x.has(kind), unrenewed) }),
			freeing(what+": a release", func(x *lacker) driver.Claim { return x.has(kind) }),
			freeing(what+": a release beside a line", func(x *lacker) driver.Claim { c := x.has(kind); x.queue(); return c }),
			freeing(what+": a release beside one of its kind", func(x *lacker) driver.Claim { c := x.has(reader); x.has(reader); return c }),
			freeing(what+": completed", func(x *lacker) driver.Claim { return with(x.has(kind), dedups) }),
			freeing(what+": out of the line", func(x *lacker) driver.Claim { held(x); return x.waits(x.claim(kind)) }),
			waiting(what+": waits for a free name", func(x *lacker) driver.Claim { return x.claim(kind) }),
			waiting(what+": waits for a name that is held", func(x *lacker) driver.Claim { held(x); return x.claim(kind) }),
		)
	}
	return append(all,
		taking("with a block of fences", func(x *lacker) driver.Claim { return x.claim(func(c *driver.Claim) { c.Fences = 4 }) }),
		taking("by a hand-off", func(x *lacker) driver.Claim {
			ok(x.T, x.store.Release(x.Context(), with(x.has(), kept, handedOff)))
			return x.claim(handedOff)
		}),
		taking("by a hand-off of nothing", func(x *lacker) driver.Claim { held(x); return x.claim(handedOff) }),
		freeing("kept", func(x *lacker) driver.Claim { return with(x.has(), kept) }),
		freeing("kept and completed", func(x *lacker) driver.Claim { return with(x.has(), kept, dedups) }),
		freeing("kept for a hand-off", func(x *lacker) driver.Claim { return with(x.has(), kept, handedOff) }),
		freeing("shared, one of two, completed", func(x *lacker) driver.Claim { x.has(reader); return with(x.has(reader), dedups) }),
		evicting("an eviction", func(x *lacker) (driver.Claim, string) { return x.shown(x.has()) }),
		evicting("an eviction of a reader", func(x *lacker) (driver.Claim, string) { return x.shown(x.has(reader)) }),
		evicting("an eviction of a reader beside another", func(x *lacker) (driver.Claim, string) {
			c, h := x.shown(x.has(reader))
			x.has(reader)
			return c, h
		}),
		evicting("an eviction of one of two", func(x *lacker) (driver.Claim, string) {
			c, h := x.shown(x.has(permit))
			x.has(permit)
			return c, h
		}),
		deed{what: "an inspection", begin: func(x *lacker) driver.Claim { c := x.has(); x.queue(); return c }, do: func(ctx context.Context, x *lacker, c driver.Claim) error {
			info, err := x.store.Inspect(ctx, c.Name)
			if err == nil && (!info.Held || info.Label != "who") {
				x.Errorf("%s: %+v", x.what, info)
			}
			return err
		}},
	)
}

func txDeeds() []deed {
	return []deed{
		taking("a free name", func(x *lacker) driver.Claim { return x.claim() }),
		taking("a name that is held", func(x *lacker) driver.Claim { x.has(); return x.claim() }),
		taking("again", func(x *lacker) driver.Claim { return x.has() }),
		taking("dedup", func(x *lacker) driver.Claim { return x.claim(dedups) }),
		taking("done", func(x *lacker) driver.Claim {
			ok(x.T, x.driver.Release(x.Context(), with(x.has(), dedups)))
			return x.claim(dedups)
		}),
		renewing("a renewal", func(x *lacker) driver.Claim { return x.has() }),
		renewing("a check", func(x *lacker) driver.Claim { return with(x.has(), unrenewed) }),
		freeing("a release", func(x *lacker) driver.Claim { return x.has() }),
		freeing("completed", func(x *lacker) driver.Claim { return with(x.has(), dedups) }),
	}
}
