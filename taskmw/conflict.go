package taskmw

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/core"
)

// Action is what happens to a task that finds its name held; see [OnConflict].
//
// The middleware recognises the holder by its label. A holder with the task's own ID is an earlier
// delivery of the same task, which asynq has given up and which still runs. A task is never finished
// because of its own earlier delivery: it is retried. The same is true if the middleware cannot rule
// out that the holder is one.
type Action uint8

const (
	// Retry leaves the task to asynq, which tries again in 5 s ± 20%; see [WithConflictDelay]. It is
	// the default.
	Retry Action = iota

	// Wait waits for the name as long as the task's own time allows, and then retries. A worker is
	// busy meanwhile. asynq.Timeout must cover waiting and work. core.WithWait has no effect.
	Wait

	// Skip finishes the task without running it if another task of the same type, with another ID,
	// holds the name. Any other holder does different work. The task is then retried, as with Retry.
	//
	// The holder's run may be nearly over, so it may miss recent changes. They are left to the next
	// task. If a run has to follow every change, use Coalesce.
	//
	// With several templates it is an error: a task that holds one of the names does other work.
	Skip

	// Coalesce lets one task of a type run and one more wait for it. It finishes all others without
	// running them. Any number of duplicates that arrive during a run lead to exactly one more run,
	// which begins after the last of them was delivered. They share the fate of that task, including
	// its retries and its archive.
	//
	// The waiting task keeps a worker busy, as under Wait. Each task costs three locks: "seat" and
	// "gate", and the name itself. The names of seat and gate are made of the type and the name in a
	// way that no key can produce, so other code never meets them. With several keys it is an error,
	// as for Skip. With [core.WithDedup] it is one too, because the first run's marker would finish
	// the waiting task. [core.OnUnavailable] has no effect: seat and gate are for all processes, and
	// no task runs while they are unavailable.
	Coalesce
)

var actionNames = [...]string{"Retry", "Wait", "Skip", "Coalesce"}

func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// OnConflict sets what happens to a task that finds its name held. It is an option for [WithType] and
// [WithTypeFunc], next to core's options. If it is given twice, the last one wins. The default, and
// the zero Action, is [Retry]. An unknown Action is an error.
//
// With [core.WithWait] the task first waits that long. Wait and Coalesce ignore it, because they wait
// anyway. On a task's last attempt, and on a server without [Configure], the task waits instead of a
// retry.
//
// It is for rules only. Elsewhere, as in core.New or in another middleware, it is [core.ErrInvalid].
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
	if ok && v.rule.action == Skip && v.isTwin(held.Label) {
		v.unrun("another task of its type runs, or has run just now")
		return nil
	}
	return &ConflictError{Err: err, Last: v.last}
}

// isTwin says whether a holder's label is that of another task of the same type.
func (v *delivery) isTwin(holder string) bool {
	// Behind the last colon stands the ID.
	kind := v.label[:strings.LastIndexByte(v.label, ':')+1]
	id, ok := strings.CutPrefix(holder, kind)
	return ok && v.label != kind && holder != v.label && id != "" && !strings.Contains(id, ":")
}
