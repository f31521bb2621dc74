//go:build linux

package weather

import (
	"slices"
	"strings"
)

// Hold is one lease, as its worker saw it.
type Hold struct {
	ID, Worker, Name      string
	Mode                  Mode
	Fence                 uint64
	Asked, Answered       int64
	Beliefs               []Event
	Last                  int64 // it was last trusted
	Releasing, ReleasedAt int64 // 0 if that never happened
	Complete              bool  // the release was to leave a dedup marker
	Outcome               string
	Reign                 *Reign // what the server had for this worker when the lease was answered
	Ghost                 bool   // an operator had taken the name before

	Keep    int64  // of WithMinHold
	Left    int64  // it was detached: for how long the name was to stay taken
	Handoff string // the lease of which the call had the hand-off
	Outer   *Hold  // the outermost one that it has re-entered, or nil
	Inner   []*Hold
	Lapsed  int64 // it was lost with others inside
}

// Call is one acquire, whatever came of it.
type Call struct{ Asked, Answered Event }

// Evidence is all that a run has left.
type Evidence struct {
	Service string // where the locks were
	Events  []Event
	Servers []*Ledger // of those that were watched: one, or all of Redlock's
	Splits  []Split
	Calls   []*Call
	Holds   []*Hold
	Texts   map[string]string // what the processes have written, by file
	Idle    []string          // what the servers still had of the workers in the end
	Failed  error             // the evidence itself is incomplete

	changes []span // of who leads: they are asked for again and again
}

func newEvidence(service string, events []Event, servers []*Ledger) *Evidence {
	v := &Evidence{Service: service, Events: events, Servers: servers, Splits: splits(events)}
	v.changes = v.failovers()
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
				h := &Hold{
					ID: e.ID, Worker: e.Worker, Name: e.Name, Mode: e.Mode, Fence: e.Fence, Asked: c.Asked.At, Answered: e.At,
					Keep: e.Keep, Handoff: e.Handoff,
				}
				holds[e.ID] = h
				v.Holds = append(v.Holds, h)
				h.enter(holds[e.Inside])
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
		case Lapsed:
			holds[e.ID].Lapsed = e.At
		default:
		}
	}
	for _, h := range v.Holds {
		if h.Mode == Degraded { // of which no server knows
			continue
		}
		h.Reign = v.reignAt(h.Worker, h.Name, h.Answered)
		h.Ghost = h.Reign == nil && v.taken(h.Worker, h.Name, h.Answered-int64(life(h.Name)), h.Answered)
	}
	return v
}

func (v *Evidence) commands() (n int) {
	for _, l := range v.Servers {
		n += len(l.Commands)
	}
	return n
}

// reigns are those of the one server that decides who has a name, if there is such a one.
func (v *Evidence) reigns() []*Reign {
	if len(v.Servers) != 1 {
		return nil
	}
	return v.Servers[0].Reigns
}

// reignAt is the worker's own reign over a name at an instant, nil if there was none.
func (v *Evidence) reignAt(worker, name string, at int64) *Reign {
	for _, r := range v.reigns() {
		if r.Name == name && r.Worker == worker && r.From <= at && at < r.To {
			return r
		}
	}
	return nil
}

// taken says whether an operator ended the worker's reign over a name within the time.
func (v *Evidence) taken(worker, name string, from, to int64) bool {
	return slices.ContainsFunc(v.reigns(), func(r *Reign) bool {
		return r.Name == name && r.Worker == worker && r.End == endOperator && from <= r.To && r.To <= to
	})
}

// doomedAt says whether the lease had been taken from its worker by an operator by then, or
// forgotten by whoever was promoted. The worker may not know yet.
func (v *Evidence) doomedAt(h *Hold, at int64) bool {
	for _, l := range v.losses(h.Name) {
		if h.Asked < l.to && l.from <= at {
			return true
		}
	}
	return h.Ghost || h.Reign != nil && h.Reign.End == endOperator && h.Reign.To <= at
}

type span struct{ from, to int64 }

// losses are when the service forgot who has a name, other than by the end of a reign.
func (v *Evidence) losses(name string) (all []span) {
	switch {
	case len(v.Servers) == 1:
		for _, at := range v.Servers[0].Restarts {
			all = append(all, span{at - dying, at})
		}
		if together(name) {
			for _, s := range v.Servers[0].Seizures {
				if s.Name == name || s.Name == "" {
					all = append(all, span{s.At - clockError, s.At + clockError})
				}
			}
		}
	case v.forgetful():
		return v.changes
	}
	return all
}

// failovers are when other servers took over.
func (v *Evidence) failovers() (all []span) {
	begun := make(map[string]int64)
	for _, e := range v.Events {
		switch {
		case e.Kind == Faulted && e.Fault == "failover":
			begun[e.ID] = e.At
		case e.Kind == Healed && begun[e.ID] != 0:
			all = append(all, span{begun[e.ID], e.At})
		}
	}
	return all
}

// trouble says whether a fault that matters for the worker's process overlapped the time:
// one of its own, of its link or of the server.
func (v *Evidence) trouble(worker string, from, to int64, which func(Event) bool) bool {
	open := make(map[string]Event)
	for _, e := range v.Events {
		switch e.Kind {
		case Faulted:
			if e.At < to && which(e) && (e.Worker == "" || strings.HasPrefix(worker, e.Worker+".")) {
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
