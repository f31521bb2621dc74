package taskmw

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
)

// HandoffHeader is the header of a task that carries the hand-off of a lock, see [Enqueue]. It is a
// secret to those who cannot read the queue.
const HandoffHeader = "holdfast-handoff"

// Enqueue hands off the lease that ctx stands under to a task. The name stays taken from the request
// until the task has finished, and nobody gets it in between.
//
//	info, err := taskmw.Enqueue(ctx, client, asynq.NewTask("order:ship", payload), 10*time.Minute)
//
// When Enqueue returns, the lease is over. If ctx comes from the lease, it has ended too: see
// [core.Lease.Detach]. The task's first attempt, on a server with [Middleware], takes the name over.
// It has a lease of its own, with a newer fence. If the task's type has a rule, that rule must make
// the same name from the task, and without [core.WithShared] and [core.WithLimit]. Otherwise the task is
// archived. Without a rule, the task runs under the name with the defaults of the middleware's Locker.
// A task that is archived or finished before it ran frees the name, except one that asynq does not even give to the
// middleware, since its asynq.Deadline has passed.
//
// keep is how long the name stays taken if the task does not start. It must be longer than the task's
// time in the queue, or the name comes free before the task begins. A task that starts later, or
// again after a failure or a crash, acquires its name like any other task.
//
// The task is sent as a copy with one more header. Give options to Enqueue. A task that was made with
// options is [core.ErrInvalid], because they cannot be read from it. So is a ctx without a lease, a task of a group
// (asynq.Group), whose aggregator does not know of the hand-off, one that starts after keep, and a lease that
// [core.Lease.Detach] refuses, such as one of several names with dedup. The lease is kept then. If the task
// could not be enqueued, as with asynq.Unique beside an equal one, the name comes free, and the error is asynq's.
func Enqueue(ctx context.Context, c *asynq.Client, task *asynq.Task, keep time.Duration, opts ...asynq.Option) (*asynq.TaskInfo, error) {
	lease, ok := core.FromContext(ctx)
	switch {
	case !ok:
		return nil, fmt.Errorf("taskmw: Enqueue: %w: no lease in the context", core.ErrInvalid)
	case c == nil || task == nil:
		return nil, fmt.Errorf("taskmw: Enqueue: %w: nil client or task", core.ErrInvalid)
	case hasOptions(task):
		return nil, fmt.Errorf("taskmw: Enqueue: %w: the task was made with options: give them to Enqueue", core.ErrInvalid)
	}
	if err := unfit(opts, keep); err != nil {
		return nil, err
	}
	var info *asynq.TaskInfo
	err := lease.HandOff(ctx, keep, func(ctx context.Context, handoff core.Handoff) (err error) {
		headers := maps.Clone(task.Headers())
		if headers == nil {
			headers = make(map[string]string, 1)
		}
		headers[HandoffHeader] = handoff.Encode()
		info, err = c.EnqueueContext(ctx, asynq.NewTaskWithHeaders(task.Type(), task.Payload(), headers), opts...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("taskmw: %w", err)
	}
	return info, nil
}

// unfit refuses options with which a hand-off is never taken over.
func unfit(opts []asynq.Option, keep time.Duration) error {
	var in time.Duration // when asynq starts the task, at the earliest
	for _, o := range opts {
		if o == nil { // asynq takes it for none
			continue
		}
		switch o.Type() {
		case asynq.GroupOpt:
			return fmt.Errorf("taskmw: Enqueue: %w: a group: asynq makes another task of it, without the hand-off", core.ErrInvalid)
		case asynq.ProcessInOpt:
			in, _ = o.Value().(time.Duration)
		case asynq.ProcessAtOpt:
			at, _ := o.Value().(time.Time)
			in = time.Until(at)
		default:
		}
	}
	if in >= keep {
		return fmt.Errorf("taskmw: Enqueue: %w: the name comes free before the task starts", core.ErrInvalid)
	}
	return nil
}

// hasOptions looks at a field that asynq does not export, so that they are not lost in silence.
func hasOptions(task *asynq.Task) bool {
	opts := reflect.ValueOf(task).Elem().FieldByName("opts")
	return opts.IsValid() && opts.Kind() == reflect.Slice && opts.Len() > 0
}

// handoffOf returns the hand-off that came with a task; ok is false if none did.
func handoffOf(task *asynq.Task) (handoff core.Handoff, ok bool, err error) {
	text, ok := task.Headers()[HandoffHeader]
	if !ok {
		return core.Handoff{}, false, nil
	}
	handoff, err = core.ParseHandoff(text)
	if err != nil {
		return core.Handoff{}, false, fmt.Errorf("%s: %w", HandoffHeader, err)
	}
	return handoff, true, nil
}

// handedRule locks the name of the hand-off that a task comes with.
func handedRule(l *core.Locker) (*rule, error) {
	k := adapter.Must(adapter.KeyFunc("", func(_ context.Context, t *asynq.Task) (string, error) {
		handoff, _, err := handoffOf(t)
		return handoff.Name(), err
	}))
	locks, err := adapter.NewRule(l, k, core.WithWait(0))
	return &rule{Rule: locks}, err
}

// giveBack frees the name of a hand-off that nobody will come for; the zero one has none, and is refused. The Locker's defaults may be those of
// a lease that no hand-off is for, or that keeps its name.
func (m *middleware) giveBack(ctx context.Context, handoff core.Handoff) {
	ctx = context.WithoutCancel(ctx) // one attempt has a limit of its own
	x, err := m.locks.Attach(ctx, handoff, core.WithWait(0), core.WithLimit(1), core.WithMinHold(0), core.WithDedup(0),
		core.OnUnavailable(core.FailClosed))
	if err == nil {
		_ = x.Release(ctx) // it is gone at its time, at the latest
	}
}
