package core

import (
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// longWait is for how many TTLs a call waits before observers and the log are told, once. It may be one of several
// calls, here or in other processes, that wait for one another, or a part of the work that it waits for. Nobody
// can know that, so nothing changes for the call.
const longWait = 3

// untilLong fires when the call has waited for so long, or never if nobody is to be told.
func (a *acquisition) untilLong() <-chan time.Time {
	if a.told || a.cfg.campaigns || a.engine.events == nil {
		return nil
	}
	return time.After(longWait*a.cfg.ttl - time.Since(a.began))
}

// tellLong tells observers, once, if the call has waited for so long. held is who has the name, as far as is known.
func (a *acquisition) tellLong(held *driver.Held) {
	waited := time.Since(a.began)
	if waited < longWait*a.cfg.ttl || a.told || a.cfg.campaigns || a.engine.events == nil {
		return
	}
	a.told = true
	e := LongWaitEvent{Subject: a.cfg.subject(a.ctx, a.name), Waited: waited}
	if held != nil {
		e.Holder = held.Label
	}
	for x := leaseOf(a.ctx); x != nil; x = x.outer {
		if x.live() && !slices.Contains(e.Holds, x.name) {
			e.Holds, e.templates = append(e.Holds, x.name), append(e.templates, x.cfg.template)
		}
	}
	slices.Reverse(e.Holds)
	slices.Reverse(e.templates)
	a.engine.events.add(a.engine, e)
}

func (b *operatorLog) longWait(e LongWaitEvent) {
	attrs := []slog.Attr{slog.Duration("waited", e.Waited), slog.Any("holds", e.templates)}
	if b.names {
		attrs = append(attrs, slog.String("holder", e.Holder), slog.Any("holds_names", e.Holds))
	}
	b.warn(e.Subject, "holdfast: a call has waited for three TTLs; if the holder of the name waits for this call, "+passOn, attrs...)
}
