//go:build linux

package chaos

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// The model of a lease, for porcupine. Its state is one name's.
type state struct {
	holder string // the lease, "" if there is none
	fence  uint64 // the largest
	until  int64  // the holder's lease does not end by itself before that
}

type op struct {
	verb    verb
	lease   string
	fence   uint64
	until   int64  // believe: what the lease says of its end; freeIt: the name is left for a hand-off, until then at least
	handoff string // grant: the lease that has left the name for it; used: too
	by      int64  // grant: when it had been answered at the latest
}

type verb uint8

const (
	grantIt   verb = iota // a lease was granted
	believe               // it said that it may be trusted
	freeIt                // its release was confirmed
	perhaps               // it was released, or was not: nobody knows
	destroyed             // an operator took the name from whoever had it
	used                  // a hand-off was used, or was not: nobody knows
)

// left is who has a name that is left for the hand-off of a lease.
func left(lease string) string { return "hand-off of " + lease }

// step is what a state may become by an operation; nothing if the operation cannot be.
func (s state) step(o op) []any {
	switch o.verb {
	case grantIt:
		return s.grant(o)
	case believe:
		if s.holder != o.lease {
			return nil
		}
		s.until = max(s.until, o.until)
		return []any{s}
	case freeIt:
		if s.holder != o.lease {
			return nil
		}
		if o.until != 0 {
			return []any{state{holder: left(o.lease), fence: s.fence, until: o.until}}
		}
		return []any{state{fence: s.fence}}
	case perhaps:
		return s.orFree(o.lease)
	case used:
		return s.orFree(left(o.handoff))
	default:
		return []any{state{fence: s.fence}}
	}
}

func (s state) grant(o op) []any {
	free := s.holder == "" || s.until <= o.by || s.holder == left(o.handoff)
	if !free || o.fence <= s.fence {
		return nil
	}
	return []any{state{holder: o.lease, fence: o.fence}}
}

// orFree is the state as it is, or with the name free if that holder has it.
func (s state) orFree(holder string) []any {
	if s.holder != holder {
		return []any{s}
	}
	return []any{s, state{fence: s.fence}}
}

var leaseModel = porcupine.NondeterministicModel{
	Init:  func() []any { return []any{state{}} },
	Step:  func(s, input, _ any) []any { return s.(state).step(input.(op)) },
	Equal: func(a, b any) bool { return a == b },
}

// linearizable says whether the operations on one name can have happened one after the
// other; and if they cannot, how many of them can.
func linearizable(ops []porcupine.Operation) (verdict porcupine.CheckResult, explained int) {
	const patience = time.Minute
	model := leaseModel.ToModel()
	verdict, info := porcupine.CheckOperationsVerbose(model, ops, patience)
	if verdict == porcupine.Ok {
		return verdict, len(ops)
	}
	for _, partition := range info.PartialLinearizations() {
		for _, line := range partition {
			explained = max(explained, len(line))
		}
	}
	return verdict, explained
}

func operation(o op, call, ret int64) porcupine.Operation {
	if ret == 0 {
		ret = math.MaxInt64
	}
	return porcupine.Operation{Input: o, Call: call, Return: ret}
}

// checkOrder has porcupine look for an order in which every name had one holder at a time, with a larger fence each.
func checkOrder(v *Evidence) (breaches []string) {
	for name, ops := range v.operations() {
		verdict, explained := linearizable(ops)
		if verdict != porcupine.Ok {
			breaches = append(breaches, fmt.Sprintf("%s: %s; %d of %d operations have an order", name, verdict, explained, len(ops)))
		}
	}
	return breaches
}

// operations are those of the model. What an operator has taken from its holder is no breach of ours for as long as the holder
// cannot know.
func (v *Evidence) operations() map[string][]porcupine.Operation {
	all := make(map[string][]porcupine.Operation)
	for name, holds := range v.byName() {
		if together(name) {
			continue
		}
		latest := make(map[string]int64) // by process
		for _, h := range holds {
			// Where its process has had the name before, a lease was not granted while that one was trusted; else there would be too many
			// orders to try. That a process has a name once at a time is for checkTrust to see.
			called := h.Asked
			if latest[h.Worker] < h.Answered {
				called = max(called, latest[h.Worker])
			}
			latest[h.Worker] = max(latest[h.Worker], h.Last)
			if !h.Ghost {
				all[name] = append(all[name], v.history(h, called)...)
			}
		}
	}
	all[passedName] = append(all[passedName], v.lostHandoffs()...)
	for _, g := range v.grants() {
		if ops, ok := all[g.Name]; ok && g.End == endOperator && g.Worker != "" {
			all[g.Name] = append(ops, operation(op{verb: destroyed}, g.To-clockError, g.To+clockError))
		}
	}
	for name := range all {
		for _, l := range v.losses(name) {
			all[name] = append(all[name], operation(op{verb: destroyed}, l.from, l.to))
		}
	}
	return all
}

// history is what happened to one lease.
func (v *Evidence) history(h *Hold, called int64) (ops []porcupine.Operation) {
	add := func(o op, call, ret int64) { ops = append(ops, operation(o, call, ret)) }
	add(op{verb: grantIt, lease: h.ID, fence: h.Fence, handoff: h.Handoff, by: h.Answered + rounding}, called, h.Answered)
	for _, e := range h.Beliefs {
		if !v.doomedAt(h, e.At) {
			add(op{verb: believe, lease: h.ID, until: e.Until}, e.Last, e.At)
		}
	}
	isPart := strings.HasSuffix(h.ID, "/"+h.Name) // several names have one outcome: of a loss, others than the lost one were freed
	switch {
	case h.Releasing == 0, h.Outcome == "lost" && !isPart:
	case h.Outcome == "ok" && !v.doomedAt(h, h.ReleasedAt):
		add(op{verb: freeIt, lease: h.ID, until: h.leftUntil()}, h.Releasing, h.ReleasedAt)
	default: // afterwards it has expired in any case
		add(op{verb: perhaps, lease: h.ID}, h.Releasing, h.Releasing+2*int64(v.ttl))
	}
	return ops
}

// leftUntil is until when a detached name is certainly taken, 0 if h was not detached. A server's clock may be a little faster.
func (h *Hold) leftUntil() int64 {
	if h.Left == 0 {
		return 0
	}
	return h.Releasing + h.Left - max(rounding, h.Left/50)
}

// lostHandoffs are those with which somebody came for a name who was not told that he has it: it may have been granted, and
// given back.
func (v *Evidence) lostHandoffs() (ops []porcupine.Operation) {
	until := make(map[string]int64)
	for _, h := range v.Holds {
		until[h.ID] = h.leftUntil()
	}
	for _, c := range v.Calls {
		if t := c.Asked.Handoff; t != "" && c.Answered.Class != "ok" && c.Asked.At < until[t] {
			ops = append(ops, operation(op{verb: used, handoff: t}, c.Asked.At, until[t]))
		}
	}
	return ops
}
