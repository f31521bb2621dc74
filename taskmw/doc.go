// Package taskmw is Holdfast's door to asynq: a middleware that runs tasks one at a time
// for each key, on every machine.
//
//	taskmw.Configure(&cfg) // contention is not a failure, and retries soon
//	srv := asynq.NewServer(redisOpt, cfg)
//	mux := asynq.NewServeMux()
//	mux.Use(taskmw.Middleware(locks,
//		taskmw.WithType("order:ship", "order:{order_id}", core.WithDedup(24*time.Hour))))
//
// A key is a template over the task: {order_id} and {order.id} are read from its JSON
// payload, {header:x} from its headers, and {asynq:type}, {asynq:queue} and {asynq:id}
// are what asynq knows about it. [WithTypeFunc] takes a function instead.
//
//	outcome                      the task
//	held by another owner        is retried in 5 s ± 20%, which does not count as a failure
//	… on its last attempt        waits as long as its own time allows, and is then archived
//	… with another OnConflict    waits, is finished unrun, is archived, or is coalesced
//	key missing or invalid       is archived at once: the error wraps asynq.SkipRetry
//	unavailable, Locker closed   fails with core's error: asynq's retry, counted
//	its context has ended        fails with the context's error
//	lost while it ran            fails: a *core.LostError is joined to the handler's error
//	done: a dedup marker stands  is finished, and the handler does not run
//
// These are the door's own refusals and losses. Whatever else the handler returns goes out
// as it is, an inner core.ErrHeld, asynq.SkipRetry and asynq.RevokeTask too.
//
// asynq delivers a task again while its first delivery still runs, with the same ID: after
// a shutdown that did not wait long enough, and after a timeout. The door keeps the lease
// until the handler has really returned, so the second delivery finds the name held and is
// retried. Then it runs again, unless it has [core.WithDedup] and the first run, whose
// result asynq has ignored, succeeded.
//
// Schedulers on many nodes that enqueue the same job want it to run once for each tick. Give
// its rule [OnConflict] with [Skip] and [core.WithMinHold], shorter than a period and longer
// than the schedulers' clocks, and their tasks' ways, differ: who comes while it runs, or
// soon after, is finished unrun. With [core.WithDedup] in its place a job that fails runs
// again at once.
//
// The holder's label is the door's: "task:<type>:<id>". It shows in the text of a conflict,
// which asynq stores with the task, beside the name: like every error of a handler, that
// text is for those who run the queue.
package taskmw
