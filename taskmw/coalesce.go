package taskmw

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
)

// coalesce runs the task, waits to run it, or finishes it since another one waits.
//
// The seat is a second lock. Who has it waits for the name, and gives it up when the name is
// its own, and before its handler begins: so whoever finds the seat taken knows that a run
// will begin after this moment. The gate is a third one, held while somebody looks at the
// seat. What must not happen is that a task ends unrun and no run begins after its delivery.
// The interleavings behind the order of things:
//
//  1. A duplicate looks at the seat while its holder gets the name. Its look comes before
//     the seat is free at the lock service, and that before the holder's handler: the run
//     covers it. After that it finds the seat free, sits down, and runs next.
//  2. The holder gives up the seat and does not learn whether it did. Then the seat may be
//     seen as taken while the handler runs. So it does not run: it gives the name back and
//     is retried.
//  3. A look is answered by another task's that was under way before, as core shares the
//     answer among the goroutines of a process: what it saw may be older than the
//     delivery, and a run that began in between would not cover it. Behind the gate there is
//     one look at a time, so it is the task's own. If the gate is lost meanwhile, a look
//     that finds the seat taken says nothing, and the task is retried.
//  4. The holder of the seat dies, or is given up by asynq. asynq delivers its task again.
//     Until the seat's lease has run out duplicates end in trust of that, and nobody runs,
//     since every run has had the seat: the task itself finds its own label there, and is
//     retried, not finished. Then the first that comes sits down. If that is a duplicate, the
//     task delivered again may end in its favour: it runs later than all of them.
//  5. The holder of the seat gives up, with its time over. It is retried, and as in 4. If it
//     was its last attempt, it is archived, and that stands for all that ended for it.
//  6. Who holds the name dies. The one in the seat gets the name when the lease has run out,
//     and runs. The task that died is a duplicate like any other when it comes again.
//  7. The seat is lost while its holder waits for the name. A second one sits down, and is
//     refused nothing. The first learns of it when it wants to give the seat up: as in 2.
//  8. Two types share a name. They do other work, and so have seats of their own.
//
// Beyond reach is a seat that is taken after its task has been given up: a command that was
// lost on the way, and executed when that same task, retried, runs already. core deletes
// such a grant when it learns of it, and it is gone within one TTL.
func (v *delivery) coalesce() error {
	var seat *core.Lease
	err := v.rule.seats.Do(v.ctx, derived("gate", v.task.Type(), v.name), func(ctx context.Context) (err error) {
		seat, err = v.sit(ctx)
		return err
	}, core.WithLabel(v.label), core.WithWait(budget(v.ctx)))
	if seat == nil { // without an error another one waits
		if err == nil {
			v.unrun("another task of its type waits, and runs after this moment")
		}
		return v.outcome(err)
	}
	// Where it is given up below, this second time does nothing.
	defer func() { _ = seat.Release(context.WithoutCancel(v.ctx)) }()
	return v.outcome(v.run(seat.Release, core.WithWait(budget(v.ctx))))
}

// sit takes the seat. No seat and no error means that another task has it.
func (v *delivery) sit(ctx context.Context) (*core.Lease, error) {
	name, label := derived("seat", v.task.Type(), v.name), core.WithLabel(v.label)
	seat, err := v.rule.seats.TryAcquire(ctx, name, label)
	held, ok := errors.AsType[*core.HeldError](err)
	if ok && v.isTwin(held.Label) {
		return nil, nil //nolint:nilnil // documented
	}
	if ok && v.waits { // for the end of this task's earlier delivery
		return v.rule.seats.Acquire(ctx, name, label, core.WithWait(budget(ctx)))
	}
	return seat, err
}

// seatOptions are those of the gate and the seat. A seat is bounded by the task's time, has to
// be free the moment it is given up, and counts for all processes, whatever the Locker's defaults
// say.
func seatOptions(template string) []core.Option {
	return []core.Option{
		core.WithTemplate(text(template, "") + "%seat"), core.WithLimit(1),
		core.WithMaxHold(0), core.WithMinHold(0), core.WithDedup(0), core.OnUnavailable(core.FailClosed),
	}
}

// derived makes a name that belongs to another one and to a task type. No key makes it: in
// names of keys two hexadecimal digits or "sha256-" follow a '%'. It is no longer than the
// names that core takes.
func derived(what, taskType, name string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", taskType, name))
	end := "%" + what + "-" + hex.EncodeToString(sum[:])
	head := min(len(name), key.MaxName-len(end))
	for head > 0 && head < len(name) && !utf8.RuneStart(name[head]) {
		head--
	}
	return name[:head] + end
}
