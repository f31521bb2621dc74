package taskmw

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
)

// Action is what becomes of a task that finds its name held; see [OnConflict].
//
// The holder's label tells the door who that is. A holder with the task's own ID is an
// earlier delivery of the same task, which asynq has given up and which still runs: whatever
// the action, that ends no task. Neither does a holder that the door cannot tell from one.
type Action uint8

const (
	// Retry leaves the task to asynq, which tries again in 5 s ± 20%; see
	// [WithConflictDelay]. It is the default.
	Retry Action = iota

	// Wait waits for the name as long as the task's own time allows, and then retries. A
	// worker is busy meanwhile; asynq.Timeout has to do for waiting and work, and
	// core.WithWait does nothing.
	Wait

	// Skip finishes the task unrun if a task of the same type, with another ID, is what
	// holds the name. Any other holder does other work: then it is Retry.
	//
	// That run may be nearly over: what has changed since it began is left to the next task.
	// If every change has to be followed by a run, the action is Coalesce.
	Skip

	// Archive archives the task at once. The error, which asynq stores with the task, says
	// who holds the name, matches [ErrConflict] and wraps asynq.SkipRetry.
	Archive

	// Coalesce lets one task of a type run and one more wait for it, and finishes all others
	// unrun: any number of duplicates that come while one runs end in exactly one run more,
	// which begins after the last of them was delivered. They share its fate, its retries
	// and its archive too.
	//
	// The one that waits keeps a worker busy, as under Wait. In return for the promise each
	// task costs three locks: "seat" and "gate", whose names are made of the type and of
	// the name in a way that no key can, and the name itself. Code that wants the name
	// otherwise notices nothing of them. With [core.WithDedup] it is an error: the first
	// run's marker would finish the one that waits. [core.OnUnavailable] does nothing: seat and
	// gate are for all processes, and while they cannot be had no task runs.
	Coalesce
)

var actionNames = [...]string{"Retry", "Wait", "Skip", "Archive", "Coalesce"}

func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// OnConflict sets what becomes of a task that finds its name held. It is an option for
// [WithType] and [WithTypeFunc], beside core's; a later repeat wins. The default, and the
// zero Action, is [Retry]; an unknown one is an error.
//
// With [core.WithWait] the task waits so long first, but for Wait and Coalesce, which wait
// anyhow. On a task's last attempt what would be a retry waits instead, and so it does on a
// server without [Configure].
//
// It is for rules only: elsewhere, as in core.New or at another door, it is
// [core.ErrInvalid].
func OnConflict(a Action) core.Option {
	return conflictOption{misplaced, a}
}

// conflictOption goes among core's options, whose interface is sealed, by holding one; as
// grpc's EmptyCallOption does it. The door takes it out before core sees it.
type conflictOption struct {
	core.Option

	action Action
}

// misplaced is what core makes of a conflictOption that no door has taken out: an error.
var misplaced = core.WithLabel("taskmw.OnConflict, out of its place\n")

// actionOf splits the options of a rule.
func actionOf(opts []core.Option) (action Action, others []core.Option, err error) {
	for _, o := range opts {
		if c, ok := o.(conflictOption); ok {
			action = c.action
			continue
		}
		others = append(others, o)
	}
	if int(action) >= len(actionNames) {
		return 0, nil, fmt.Errorf("OnConflict(%s): %w: no such action", action, core.ErrInvalid)
	}
	return action, others, nil
}

// conflict is the outcome of a task whose name is held.
func (v *delivery) conflict(err error) error {
	held, ok := errors.AsType[*core.HeldError](err)
	switch {
	case ok && v.rule.action == Skip && v.isTwin(held.Label):
		return nil
	case ok && v.rule.action == Archive && held.Label != v.label:
		return fmt.Errorf("%w: %w", &ConflictError{Err: err}, asynq.SkipRetry)
	default:
		return &ConflictError{Err: err, Last: v.last}
	}
}

// isTwin says whether a holder's label is that of another task of the same type.
func (v *delivery) isTwin(holder string) bool {
	// Behind the last colon stands the ID.
	kind := v.label[:strings.LastIndexByte(v.label, ':')+1]
	id, ok := strings.CutPrefix(holder, kind)
	return ok && v.label != kind && holder != v.label && id != "" && !strings.Contains(id, ":")
}
