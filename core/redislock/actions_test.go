package redislock_test

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// action is one thing that a lacker tries, for the claim that begin returns.
type action struct {
	what         string
	begin        func(x *lacker) driver.Claim
	do           func(ctx context.Context, x *lacker, c driver.Claim) error
	takes, frees bool // what no error means
	queued       bool // somebody stands in line for a free name
}

func taking(what string, begin func(x *lacker) driver.Claim) action {
	return action{what: what, begin: begin, takes: true, do: func(ctx context.Context, x *lacker, c driver.Claim) error {
		g, err := x.store.Acquire(ctx, c)
		if err == nil && c.Exclusive() && g.Fence < 1e15 {
			x.Errorf("%s: fence %d: not of the server's clock", what, g.Fence)
		}
		return err
	}}
}

func renewing(what string, begin func(x *lacker) driver.Claim) action {
	return action{what: what, begin: begin, takes: true, do: func(ctx context.Context, x *lacker, c driver.Claim) error {
		return errors.Join(x.store.Renew(ctx, []driver.Claim{c})...)
	}}
}

func freeing(what string, begin func(x *lacker) driver.Claim) action {
	return action{what: what, begin: begin, frees: true, do: func(ctx context.Context, x *lacker, c driver.Claim) error {
		return x.store.Release(ctx, c)
	}}
}

func waiting(what string, begin func(x *lacker) driver.Claim) action {
	return action{what: what, begin: begin, takes: true, do: func(ctx context.Context, x *lacker, c driver.Claim) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		defer cancel()
		_, err := x.store.Wait(ctx, c)
		return err
	}}
}

// evicting takes the name from a holder of a kind, beside some others.
func evicting(what string, kind func(*driver.Claim), others int) action {
	var meant string
	return action{what: what, frees: true, begin: func(x *lacker) driver.Claim {
		c := x.has(kind)
		info := known(x.T, x.store, c.Name)
		if meant = info.Handle; len(info.Holders) == 1 {
			meant = info.Holders[0].Handle
		}
		for range others {
			x.has(kind)
		}
		x.queue()
		return c
	}, do: func(ctx context.Context, x *lacker, c driver.Claim) error { return x.store.Evict(ctx, c.Name, meant) }}
}

// plainActions are those with nobody beside the claim.
func plainActions(what string, kind func(*driver.Claim)) []action {
	return []action{
		taking(what+": a free name", func(x *lacker) driver.Claim { return x.claim(kind) }),
		taking(what+": a name that is held", func(x *lacker) driver.Claim { x.has(); return x.claim(kind) }),
		taking(what+": again", func(x *lacker) driver.Claim { return x.has(kind) }),
		taking(what+": dedup", func(x *lacker) driver.Claim { return x.claim(kind, dedups) }),
		taking(what+": done", func(x *lacker) driver.Claim {
			release(x.T, x.store, with(x.has(kind), dedups))
			return x.claim(kind, dedups)
		}),
		renewing(what+": a renewal", func(x *lacker) driver.Claim { return x.has(kind) }),
		renewing(what+": a check", func(x *lacker) driver.Claim { return with(x.has(kind), unrenewed) }),
		freeing(what+": a release", func(x *lacker) driver.Claim { return x.has(kind) }),
		freeing(what+": completed", func(x *lacker) driver.Claim { return with(x.has(kind), dedups) }),
	}
}

// actions are what scripts do.
func actions() []action {
	var all []action
	for what, kind := range kinds {
		all = append(append(all, plainActions(what, kind)...),
			taking(what+": a name that two hold", func(x *lacker) driver.Claim { x.has(permit); x.has(permit); return x.claim(kind) }),
			taking(what+": a name with one of its kind", func(x *lacker) driver.Claim { x.has(kind); return x.claim(kind) }),
			taking(what+": a name with one of its kind, beside one that has died", func(x *lacker) driver.Claim { x.has(reader); x.dies(); return x.claim(kind) }),
			action{takes: true, queued: true, what: what + ": a free name that another one waits for", begin: func(x *lacker) driver.Claim {
				x.queue()
				return x.claim(kind)
			}, do: taking("", nil).do},
			taking(what+": from the line", func(x *lacker) driver.Claim { x.has(); return x.waits(x.claim(kind)) }),
			taking(what+": first in line", func(x *lacker) driver.Claim {
				owner := x.has()
				c := x.waits(x.claim(kind))
				release(x.T, x.store, owner)
				return c
			}),
			freeing(what+": a release beside a line", func(x *lacker) driver.Claim { c := x.has(kind); x.queue(); return c }),
			freeing(what+": a release beside one of its kind", func(x *lacker) driver.Claim { c := x.has(reader); x.has(reader); return c }),
			freeing(what+": out of the line", func(x *lacker) driver.Claim { x.has(); return x.waits(x.claim(kind)) }),
			waiting(what+": waits for a free name", func(x *lacker) driver.Claim { return x.claim(kind) }),
			waiting(what+": waits for a name that is held", func(x *lacker) driver.Claim { x.has(); return x.claim(kind) }),
		)
	}
	return append(all,
		taking("with a block of fences", func(x *lacker) driver.Claim { return x.claim(func(c *driver.Claim) { c.Fences = 4 }) }),
		taking("by a hand-off", func(x *lacker) driver.Claim {
			release(x.T, x.store, with(x.has(), kept, handedOff))
			return x.claim(handedOff)
		}),
		taking("by a hand-off of nothing", func(x *lacker) driver.Claim { x.has(); return x.claim(handedOff) }),
		freeing("kept", func(x *lacker) driver.Claim { return with(x.has(), kept) }),
		freeing("kept and completed", func(x *lacker) driver.Claim { return with(x.has(), kept, dedups) }),
		freeing("kept for a hand-off", func(x *lacker) driver.Claim { return with(x.has(), kept, handedOff) }),
		freeing("shared, one of two, completed", func(x *lacker) driver.Claim { x.has(reader); return with(x.has(reader), dedups) }),
		evicting("an eviction", alone, 0),
		evicting("an eviction of a reader", reader, 0),
		evicting("an eviction of a reader beside another", reader, 1),
		evicting("an eviction of one of two", permit, 1),
		action{what: "an inspection", begin: func(x *lacker) driver.Claim { c := x.has(); x.queue(); return c }, do: func(ctx context.Context, x *lacker, c driver.Claim) error {
			info, err := x.store.Inspect(ctx, c.Name)
			if err == nil && (!info.Held || info.Label != "who") {
				x.Errorf("%s: %+v", x.what, info)
			}
			return err
		}},
	)
}
