// Package rivermw is Holdfast's middleware for River. It runs jobs one at a time for each key, on every
// machine.
//
//	client, err := river.NewClient(driver, &river.Config{
//		Middleware: []rivertype.Middleware{rivermw.Middleware(locks,
//			rivermw.WithKind("ship_order", "order:{order_id}", core.WithDedup(24*time.Hour)),
//		)},
//		…
//	})
//
// A key is a template. {order_id} and {order.id} are read from the job's arguments, {metadata:x} from its
// metadata. {river:kind}, {river:queue} and {river:id} are what River knows about the job.
//
//	outcome                      the job
//	held by another owner        is snoozed for 5 s ± 20%, which costs no attempt
//	key missing or invalid       is cancelled
//	unavailable, Locker closed   fails with core's error: River's retry, counted
//	the Locker drains            is snoozed
//	its context has ended        fails with the context's error
//	lost while it ran            fails: a *core.LostError is joined to the worker's error
//	duplicate: a dedup marker    is completed, and the worker does not run
//
// What the worker returns is passed on unchanged. A loss is the exception: a worker that has lost its
// lock cannot cancel or snooze its job for good, so the job is retried.
//
// River runs a job again that it takes for stuck (Config.RescueStuckJobsAfter), and abandons one at its timeout, while
// its worker may still run. The lease is kept until the worker has returned. So the second run
// finds the name held, and is snoozed.
//
// River's own unique jobs keep equal jobs from being inserted twice. They do not keep two different jobs
// from working on one order, nor a job and a request.
package rivermw
