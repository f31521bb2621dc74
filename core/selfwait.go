package core

import (
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// A call that asks for a name inside the work of its lease, with a context that does not have that lease,
// waits for itself. Nobody can know that: the call may as well belong to other work, which only has to
// wait. So it is no error. But if it goes on for a TTL, the log says it, once for each pair of templates.
//
// The watchdog looks from time to time, so calls that wait need no timer for it.

const (
	selfWaitPause = 5 * time.Second // between two looks
	mostSelfWaits = 16              // that one look tells of
)

// selfWait is for the log: a call waits for a name that this process has had for longer than a TTL.
type selfWait struct {
	Subject

	template, label string // of the holder
	held            time.Duration
}

// tellSelfWaits looks for calls that may wait for themselves. The watchdog's tick calls it, which never
// runs twice at once.
func (r *engine) tellSelfWaits(now clock.Reading) {
	if r.events == nil || r.events.log == nil || r.waiters.Load() == 0 || now.Awake().Sub(r.selfLooked) < selfWaitPause {
		return
	}
	r.selfLooked = now.Awake()
	for _, e := range r.names.selfWaits(now) {
		r.events.add(r, e)
	}
}

// selfWaits returns one call for each queue, and each call only once.
func (s *names) selfWaits(now clock.Reading) (all []selfWait) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, q := range s.queues {
		name, _, _ := strings.Cut(key, "\x00")
		t := s.holders.alone[name]
		if t == nil {
			continue
		}
		for w := q.head; w != nil && w.call != nil && time.Since(w.call.began) >= w.cfg.ttl; w = w.next {
			if w.told || w.lease == nil || w.lease.standsUnder(t) {
				continue
			}
			if e, long := t.selfWait(now, w.cfg.ttl); long {
				w.told, e.Subject = true, w.cfg.subject(w.lease.values, name)
				all = append(all, e)
			}
			break
		}
		if len(all) == mostSelfWaits {
			break
		}
	}
	return all
}

// standsUnder says whether the context that x was asked for with has a lease of t.
func (x *Lease) standsUnder(t *tenure) bool {
	y := x.outer
	for y != nil && y.tenure != t {
		y = y.outer
	}
	return y != nil
}

// selfWait describes the turn under way, and says whether it has lasted for longer than ttl.
func (t *tenure) selfWait(now clock.Reading, ttl time.Duration) (e selfWait, long bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := now.Up().Sub(t.first.since)
	return selfWait{template: t.first.cfg.template, label: t.cfg.label, held: held}, held >= ttl
}

// selfWaits says once for each pair of templates that a call may wait for itself.
func (b *operatorLog) selfWaits(e selfWait) {
	if !b.newOrder("itself " + e.template + " then " + e.Template) {
		return
	}
	attrs := []slog.Attr{slog.String("holder", orNone(e.template)), slog.Duration("held", e.held)}
	if b.names {
		attrs = append(attrs, slog.String("holder_label", e.label))
	}
	b.warn(e.Subject, "holdfast: a call waits for a name that this process has had for longer than a TTL; if it is a part of that work, it waits for itself: "+
		passOn, attrs...)
}
