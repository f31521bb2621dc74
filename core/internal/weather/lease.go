//go:build linux

package weather

import (
	"slices"
	"strings"
)

// Hold is one lease, as its worker saw it.
type Hold struct {
	ID, Worker, Name      string
	Fence                 uint64
	Asked, Answered       int64
	Beliefs               []Event
	Last                  int64 // it was last trusted
	Releasing, ReleasedAt int64 // 0 if that never happened
	Outcome               string
	Reign                 *Reign // what the server had for this worker when the lease was answered
	Ghost                 bool   // an operator had taken the name before
}

// Call is one acquire, whatever came of it.
type Call struct{ Asked, Answered Event }

// Evidence is all that a run has left.
type Evidence struct {
	Events []Event
	Ledger *Ledger
	Calls  []*Call
	Holds  []*Hold
	Server []Command
	Idle   []string // what the server still had of the workers in the end
	Failed error    // the evidence itself is incomplete
}

func newEvidence(events []Event, commands []Command) *Evidence {
	v := &Evidence{Events: events, Server: commands, Ledger: readLedger(commands)}
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
				h := &Hold{ID: e.ID, Worker: e.Worker, Name: e.Name, Fence: e.Fence, Asked: c.Asked.At, Answered: e.At}
				holds[e.ID] = h
				v.Holds = append(v.Holds, h)
			}
		case Believed:
			h := holds[e.ID]
			h.Beliefs = append(h.Beliefs, e)
			h.Last = max(h.Last, e.Last)
		case Releasing:
			h := holds[e.ID]
			h.Releasing, h.Last = e.At, max(h.Last, e.Last)
		case Released:
			h := holds[e.ID]
			h.ReleasedAt, h.Outcome = e.At, e.Class
		default:
		}
	}
	for _, h := range v.Holds {
		h.Reign = v.reignAt(h.Worker, h.Name, h.Answered)
		h.Ghost = h.Reign == nil && v.taken(h.Worker, h.Name, h.Answered-int64(TTL), h.Answered)
	}
	return v
}

// reignAt is the worker's own reign over a name at an instant, nil if there was none.
func (v *Evidence) reignAt(worker, name string, at int64) *Reign {
	for _, r := range v.Ledger.Reigns {
		if r.Name == name && r.Worker == worker && r.From <= at && at < r.To {
			return r
		}
	}
	return nil
}

// taken says whether an operator ended the worker's reign over a name within the time.
func (v *Evidence) taken(worker, name string, from, to int64) bool {
	return slices.ContainsFunc(v.Ledger.Reigns, func(r *Reign) bool {
		return r.Name == name && r.Worker == worker && r.End == endOperator && from <= r.To && r.To <= to
	})
}

// doomedAt says whether the lease had been taken from its worker by an operator by then.
// The worker may not know yet.
func (v *Evidence) doomedAt(h *Hold, at int64) bool {
	for _, restart := range v.Ledger.Restarts {
		if h.Asked < restart && restart-dying <= at {
			return true
		}
	}
	return h.Ghost || h.Reign != nil && h.Reign.End == endOperator && h.Reign.To <= at
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
