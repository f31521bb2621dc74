package taskmw

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
)

// Action is what happens to a task that finds its name held; see [Rule.OnConflict].
//
// The middleware recognises the holder by its label. A holder with the task's own ID is an earlier
// delivery of the same task, which asynq has given up and which still runs. A task is never finished
// because of its own earlier delivery: it is retried. The same is true if the middleware cannot rule
// out that the holder is one.
type Action uint8

const (
	// Retry leaves the task to asynq, which tries again in 5 s ± 20%; see [WithConflictDelay]. It is
	// the default. With core.WithWait(core.WaitForever), the task first waits in its worker as long as its own time allows:
	// asynq.Timeout must cover waiting and work.
	Retry Action = iota

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
	// its retries and its archive. A task that [Enqueue] has sent runs in any case.
	//
	// The waiting task keeps a worker busy, as long as its own time allows. Package coalesce of core says what it costs, and
	// has the same for requests. With several keys it is an error,
	// as for Skip. With [core.WithDedup] it is one too, because the first run's marker would finish
	// the waiting task.
	Coalesce
)

// isTwin says whether another task of the same type holds the name, for a rule with Skip. err is core's, of a held name.
func (a *attempt) isTwin(err error) bool {
	if a.rule.action != Skip {
		return false
	}
	held, _ := errors.AsType[*core.HeldError](err)
	// Behind the last colon stands the ID.
	kind := a.label[:strings.LastIndexByte(a.label, ':')+1]
	id, ok := strings.CutPrefix(held.Label, kind)
	return ok && a.label != kind && held.Label != a.label && id != "" && !strings.Contains(id, ":")
}

// label names a task to those who find its name held: task:<type>:<id>. No two tasks have
// the same one, and the ID is what follows the last colon.
func label(taskType, id string) string { return "task:" + part(taskType, "") + ":" + part(id, ":") }

// maxPart is the longest type or ID in a label, whose 256 bytes have to do for both.
const maxPart = 120

// odd says what a label cannot have as it is.
func odd(r rune) bool { return r == '%' || r == utf8.RuneError || unicode.IsControl(r) }

// part makes of any s what core takes in labels and scopes. Different strings stay different.
func part(s, special string) string {
	short := s
	if strings.ContainsFunc(s, odd) || special != "" && strings.Contains(s, special) {
		short = url.QueryEscape(s)
	}
	if len(short) > maxPart { // elsewhere two hexadecimal digits follow a '%'
		return fmt.Sprintf("%%sha256-%x", sha256.Sum256([]byte(s)))
	}
	return short
}

// budget is how long to wait. It ends a little before the task's time does: once that is
// over, asynq does not listen any more, and archives the task without saying why. A handler
// that gets the name with so little time left could not finish.
func budget(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return core.WaitForever
	}
	left := time.Until(deadline)
	switch wait := left - min(250*time.Millisecond, left/10); {
	case wait < time.Millisecond:
		return 0
	case wait > 365*24*time.Hour:
		return core.WaitForever
	default:
		return wait
	}
}
