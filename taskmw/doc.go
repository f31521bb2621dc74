// Package taskmw is Holdfast's middleware for asynq. It runs tasks one at a time for each key, on
// every machine.
//
//	taskmw.Configure(&cfg) // contention is not a failure, and retries soon
//	srv := asynq.NewServer(redisOpt, cfg)
//	mux := asynq.NewServeMux()
//	mux.Use(taskmw.Middleware(locks,
//		taskmw.WithType("order:ship", "order:{order_id}", core.WithDedup(24*time.Hour))))
//
// A key is a template. {order_id} and {order.id} are read from the task's JSON payload, {header:x|text}
// from its headers, which are text and need a form, such as int or uuid. {asynq:type}, {asynq:queue} and {asynq:id} are what asynq knows about the task.
// [WithTypeFunc] takes a function instead.
//
//	outcome                      the task
//	held by another owner        is retried in 5 s ± 20%, which does not count as a failure
//	… on its last attempt        waits as long as its own time allows, and is then archived
//	… with another OnConflict    waits, is finished without a run, or is coalesced
//	key missing or invalid       is archived at once: the error wraps asynq.SkipRetry
//	unavailable, Locker closed   fails with core's error: asynq's retry, counted
//	a server without Configure   fails, and the error says what to add
//	its context has ended        fails with the context's error
//	lost while it ran            fails: a *core.LostError is joined to the handler's error
//	duplicate: a dedup marker    is finished, and the handler does not run
//
// These are the middleware's own refusals and losses. What the handler returns is passed on
// unchanged, including an inner core.ErrHeld, asynq.SkipRetry and asynq.RevokeTask. But the verdict of a
// handler that had lost its lock is not final: such a task is retried.
//
// asynq sometimes delivers a task again, with the same ID, while its first delivery still runs: after
// a shutdown that did not wait long enough, and after a timeout. The middleware keeps the lease until
// the handler has really returned. So the second delivery finds the name held and is retried. Later
// it runs again, unless it has [core.WithDedup] and the first run succeeded. asynq ignores the result
// of that first run.
//
// Schedulers on many nodes may enqueue the same job, which should run once for each tick. Give its
// rule [Rule.OnConflict] with [Skip], and [core.WithMinHold]: MinHold shorter than the period, and longer
// than the clock skew plus the queue latency. It counts from the start of the run, so the other nodes'
// tasks for this tick are finished without a run, and the next tick's task finds the name free. Do
// not use [core.WithDedup] for this. Its window counts from the end of the work, so a long run
// swallows the next tick. And a job that fails leaves no marker, so the other nodes' tasks run it
// again at once.
//
// The middleware sets the holder's label: "task:<type>:<id>". asynq stores the text of a conflict
// with the task, and that text contains the label and the name. Like every error of a handler, it is
// for those who run the queue.
package taskmw
