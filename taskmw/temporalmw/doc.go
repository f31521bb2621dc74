// Package temporalmw is Holdfast's interceptor for Temporal's activities. It runs activities one at a time
// for each key, on all workers, and besides requests and tasks that lock the same name.
//
//	w := worker.New(client, "orders", worker.Options{
//		Interceptors: []interceptor.WorkerInterceptor{temporalmw.Interceptor(locks,
//			temporalmw.WithActivity("Ship", "order:{order_id}"),
//		)},
//	})
//
// A key is a template. {order_id} and {order.id} are read from the first argument, as JSON has it. {arg:1} is the
// second argument, a string or a number, and {arg:1.id} a member of it. {temporal:workflow}, {temporal:activity} and {temporal:queue} are the
// workflow's ID, the activity's type, and the task queue.
//
// Temporal has application errors with a type. The interceptor's own are:
//
//	held by another owner        TypeHeld; retried in 5 s ± 20%
//	unavailable, Locker closed   TypeUnavailable; retried by the activity's policy
//	lost while it ran            TypeLost, whatever the activity returned; retried by the policy
//	key missing or invalid       TypeKey; not retried
//	duplicate: a dedup marker    TypeDuplicate; not retried
//
// If its context ends first, the activity fails with that error. All else is the activity's own. The worker's log has
// the name and the holder; the workflow's history has neither.
//
// Each refusal is an attempt, since Temporal knows no other retry. So let the retry policy have attempts enough, or
// wait with [core.WithWait]; StartToCloseTimeout has to cover the wait. The activity does not
// heartbeat meanwhile, so a HeartbeatTimeout has to be longer too.
//
// A workflow with an ID for each order excludes other workflows of that order by itself. The lock is for activities of
// different workflows, and for what is not Temporal's. Workflow code cannot take locks: it has to be
// deterministic.
//
// After a timeout Temporal starts the next attempt, while the first may still run. The lease is kept until the
// activity has returned. So the second attempt finds the name held. One that returns activity.ErrResultPending has
// returned: what goes on until its completion has no lock, and [core.WithDedup] leaves no marker.
package temporalmw
