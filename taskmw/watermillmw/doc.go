// Package watermillmw is Holdfast's middleware for Watermill, whose messages come from Kafka, NATS, AMQP and others. It
// handles messages one at a time for each key, on all machines.
//
//	router.AddNoPublisherHandler("ship-orders", "orders", subscriber, ship).
//		AddMiddleware(watermillmw.Lock(locks, "order:{order_id}", core.WithDedup(24*time.Hour)))
//
// A key is a template. {order_id} and {order.id} are read from the message's JSON payload, {metadata:x|text} from
// its metadata, which is text and needs a form, such as int or uuid. {watermill:uuid}, {watermill:topic} and
// {watermill:handler} are what Watermill knows. [LockFunc] takes a function instead.
//
//	outcome                      the handler returns
//	held by another owner        core's error, if there is a WithWait; see below
//	key missing or invalid       an error that matches ErrKey
//	unavailable, Locker closed   core's error
//	lost while it ran            a *core.LostError joined to the handler's error, and no messages
//	duplicate: a dedup marker    nil: the message is acknowledged, and the handler does not run
//
// An error makes Watermill send a Nack, unless another middleware deals with it. Put Recoverer, Retry and
// PoisonQueue before the lock. A message without a key never gets one: let the poison queue have
// it (PoisonQueueWithFilter and errors.Is with [ErrKey]).
//
// # Waiting
//
// The middleware waits for a held name as long as the message's context allows, or as [core.WithWait] says. A
// Nack would bring the message back at once, again and again. While it waits, the subscriber's next messages of
// that partition or queue wait too, as they do for a slow handler.
//
// # Duplicates
//
// Brokers deliver at least once. The lock keeps two deliveries from being handled at the same time, and
// [core.WithDedup] keeps the second from being handled again. Its default scope is the handler's name. So
// the key has to name the message, or what it is about has to happen once.
//
// Messages that the handler returns are published after the release, and that may fail. So they leave no marker:
// the message is handled again whenever it comes again. With WithDedup, a handler that produces publishes by
// itself, before it returns.
package watermillmw
