//go:build linux

package chaos

import (
	"cmp"
	"slices"
	"time"
)

// Hold is one lease, as its worker saw it.
type Hold struct {
	Event // the answer; Last is when it was last trusted, and Complete says that the release was to leave a dedup marker

	Asked, Answered       int64
	Beliefs               []Event
	Releasing, ReleasedAt int64 // 0 if that never happened
	Outcome               string
	Grant                 *Grant // what the server had for this worker when the lease was answered
	Ghost                 bool   // an operator had taken the name before
	Left                  int64  // it was detached: for how long the name was to stay taken
}

// Call is one acquire, whatever came of it.
type Call struct{ Asked, Answered Event }

// Evidence is all that a run has left.
type Evidence struct {
	Service string // where the locks were
	Events  []Event
	Servers []*Ledger // of those that were watched: one, or all of Redlock's
	Calls   []*Call
	Holds   []*Hold
	Idle    []string // what the servers still had of the workers in the end
	Failed  error    // the evidence itself is incomplete

	ttl   time.Duration
	slack time.Duration // how much later than its bound a call may come back; 0 means usualSlack
}

func newEvidence(service string, events []Event, servers []*Ledger) *Evidence {
	v := &Evidence{Service: service, Events: events, Servers: servers, ttl: lifeIn(service)}
	calls, holds := make(map[string]*Call), make(map[string]*Hold)
	for _, e := range events {
		switch e.Kind {
		case Asked:
			calls[e.ID] = &Call{Asked: e}
			v.Calls = append(v.Calls, calls[e.ID])
		case Answered:
			c := calls[e.ID]
			c.Answered = e
			if e.Class == "ok" {
				holds[e.ID] = &Hold{Event: e, Asked: c.Asked.At, Answered: e.At}
				v.Holds = append(v.Holds, holds[e.ID])
			}
		case Believed:
			h := holds[e.ID]
			h.Beliefs = append(h.Beliefs, e)
			h.Last = max(h.Last, e.Last)
		case Releasing:
			h := holds[e.ID]
			h.Releasing, h.Last, h.Complete, h.Left = e.At, max(h.Last, e.Last), e.Complete, e.Keep
		case Released:
			h := holds[e.ID]
			h.ReleasedAt, h.Outcome = e.At, e.Class
		default:
		}
	}
	for _, h := range v.Holds {
		h.Grant = v.grantAt(h.Worker, h.Name, h.Answered)
		h.Ghost = h.Grant == nil && slices.ContainsFunc(v.grants(), func(g *Grant) bool {
			return g.Name == h.Name && g.Worker == h.Worker && g.End == endOperator && h.Answered-int64(v.ttl) <= g.To && g.To <= h.Answered
		})
	}
	return v
}

// grants are those of the one server that decides who has a name, if there is such a one.
func (v *Evidence) grants() []*Grant {
	if len(v.Servers) != 1 {
		return nil
	}
	return v.Servers[0].Grants
}

// grantAt is the worker's own grant of a name at an instant, nil if there was none.
func (v *Evidence) grantAt(worker, name string, at int64) *Grant {
	for _, g := range v.grants() {
		if g.Name == name && g.Worker == worker && g.From <= at && at < g.To {
			return g
		}
	}
	return nil
}

// doomedAt says whether the lease had been taken from its worker by an operator by then. The worker may not know yet.
func (v *Evidence) doomedAt(h *Hold, at int64) bool {
	for _, l := range v.losses(h.Name) {
		if h.Asked < l.to && l.from <= at {
			return true
		}
	}
	return h.Ghost || h.Grant != nil && h.Grant.End == endOperator && h.Grant.To <= at
}

type span struct{ from, to int64 }

// losses are when the service forgot who has a name, other than by the end of a grant.
func (v *Evidence) losses(name string) (all []span) {
	if len(v.Servers) != 1 {
		return nil
	}
	for _, at := range v.Servers[0].Restarts {
		all = append(all, span{at - dying, at})
	}
	if together(name) {
		all = append(all, v.seizures(name)...)
	}
	return all
}

const (
	dying      = int64(100 * time.Millisecond) // from the end of a server to the moment that is noted for it
	clockError = int64(2 * time.Millisecond)   // between the server's clock and ours
)

// seizures are when an operator took a name, or all of them.
func (v *Evidence) seizures(name string) (all []span) {
	for _, l := range v.Servers {
		for _, s := range l.Seizures {
			if s.Name == name || s.Name == "" {
				all = append(all, span{s.At - clockError, s.At + clockError})
			}
		}
	}
	return all
}

// forgot says whether a service may have forgotten within the time what it knew of a name: a marker waits for no replica.
func (v *Evidence) forgot(name string, from, to int64) bool {
	within := func(s span) bool { return from < s.to && s.from < to }
	return slices.ContainsFunc(slices.Concat(v.losses(name), v.seizures(name)), within) ||
		v.trouble("", from, to, func(e Event) bool { return e.Fault == "failover" })
}

// byName are the leases of each name, in the order of their grants.
func (v *Evidence) byName() map[string][]*Hold {
	names := make(map[string][]*Hold)
	for _, h := range v.Holds {
		names[h.Name] = append(names[h.Name], h)
	}
	for _, holds := range names {
		slices.SortFunc(holds, func(a, b *Hold) int { return cmp.Compare(a.Answered, b.Answered) })
	}
	return names
}

// trouble says whether a fault that matters for the worker's process overlapped the time: one of its own, of its link or of
// the server.
func (v *Evidence) trouble(worker string, from, to int64, which func(Event) bool) bool {
	open := make(map[string]Event)
	for _, e := range v.Events {
		switch e.Kind {
		case Faulted:
			if e.At < to && which(e) && (e.Worker == "" || isOf(worker, e.Worker)) {
				open[e.ID] = e
			}
		case Healed:
			if _, ok := open[e.ID]; ok && e.At > from {
				return true
			}
			delete(open, e.ID)
		default:
		}
	}
	return len(open) > 0
}

// stalled is for how much of a time a worker process got nothing done.
func (v *Evidence) stalled(worker string, from, to int64) (d int64) {
	for _, e := range v.Events {
		if e.Kind == Stalled && e.Worker == worker {
			d += max(0, min(e.At, to)-max(e.Last, from))
		}
	}
	return d
}
