//go:build linux

package weather

import (
	"fmt"
	"math"
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
	DescribeOperation: func(input, _ any) string {
		o := input.(op)
		return fmt.Sprintf("%d %s fence %d", o.verb, o.lease, o.fence)
	},
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
