// Package grpcmw holds a lock around gRPC methods, unary and streaming, named from the
// request.
//
//	srv := grpc.NewServer(grpcmw.ServerOptions(locks,
//		grpcmw.WithMethod("/shop.v1.Orders/Refund", "order:{order.id}"))...)
//
// While a handler runs, nobody else has the same name, at any door on any machine. The
// handler's context ends with the request or with the lock, whichever is first, and
// core.FromContext finds the lease in it. This is what a client sees of the lock itself;
// whatever the handler returns, core's errors too, goes out as it is:
//
//	held                   ABORTED, RetryInfo, ErrorInfo LOCK_HELD, pushback 250 ms ± 20%
//	key missing, invalid   INVALID_ARGUMENT, ErrorInfo LOCK_KEY_INVALID
//	unavailable, closed    UNAVAILABLE, ErrorInfo LOCK_UNAVAILABLE
//	request ended first    DEADLINE_EXCEEDED or CANCELED
//	lost while it ran      ABORTED, ErrorInfo LOCK_LOST, pushback -1
//	done (WithDedup)       ALREADY_EXISTS, ErrorInfo LOCK_DUPLICATE
//	the server's fault     INTERNAL, and a line in the log: see [WithLogger]
//
// The pushback is the trailer grpc-retry-pushback-ms: a client whose retryPolicy lists
// ABORTED waits so long and tries again, and does not after a loss. In Go that is
//
//	grpc.WithDefaultServiceConfig(`{"methodConfig": [{
//		"name": [{"service": "shop.v1.Orders"}],
//		"retryPolicy": {
//			"maxAttempts": 5, "initialBackoff": "0.25s", "maxBackoff": "1s", "backoffMultiplier": 2,
//			"retryableStatusCodes": ["ABORTED"]
//		}
//	}]}`)
//
// # Rules in the .proto file
//
// With [WithAnnotations] the rule stands beside the method; package holdfastpb says how to
// import the option, and [WithMethodOption] reads one of your own:
//
//	rpc Refund(RefundRequest) returns (RefundReply) {
//	  option (holdfast.v1.lock) = {key: "order:{order.id}", wait: "2s"};
//	}
//
// The rules are read once, in [New], from the descriptors of all generated code that is linked
// into the program (protoregistry.GlobalFiles). They are complete before main begins, so it does
// not matter that services are registered with the server only later. Nor is it known then which
// ones will be: a rule of a service that this program only calls has to work too, or must be
// replaced by [WithMethod].
//
// Not seen, and so not locked, is what has no generated code, such as a service of descriptors
// that were loaded at run time, or the methods behind grpc.UnknownServiceHandler. A test can
// compare [Interceptors.Methods] with what should be locked.
//
// # Keys
//
// A bare source is a path of proto field names in the request, {order.id}; JSON names are
// not taken. {metadata:x} is incoming metadata, which several values make invalid if they
// differ. {grpc:method} is the full method, {grpc:service} its service. Every path is
// checked against the descriptors when the interceptors are made: fields that are not
// there, lists, maps, bytes, floating point and whole messages are refused.
//
// A field that is not set is missing, also where proto2 has a default for it. In proto3, 0,
// false and the first enum value of a field without "optional" cannot be told from an unset
// one, and are missing too; in an optional field that is set they are values. An empty
// string is always missing. An integer makes the same name as its decimal digits, a bool is
// "true" or "false", and an enum is its number, which does not change from one version of
// the schema to the next.
//
// # Streams
//
// A key with a request field, and every key function, is about the first message: the lock
// is taken in the first RecvMsg, which in a server-streaming method generated code calls
// before the handler. A stream without a message has no key. Other keys are locked before
// the handler runs. A refusal comes out of RecvMsg and ends the stream's context, and the
// client gets it whatever the handler makes of it. A handler that never receives takes no
// lock.
//
// Nothing is sent before the lock is held: SendMsg and SendHeader are errors (Internal)
// until then, SetHeader is kept for later. A goroutine that sends has to start after the
// first message has been received. grpc.SetSendCompressor, too, works only from then on.
//
// The context of the stream ends with the lock even if it was taken from the stream before.
// After a loss RecvMsg and SendMsg return LOCK_LOST; one that is waiting for the client does
// so when that is over, so a handler which waits long should look at its context too.
//
// # Other interceptors
//
// What authenticates, logs or recovers belongs in front of the door: a panic passes it, and
// the lock is released on the way. So does what rejects requests, so that only those wait
// for a lock that will be served. [New] gives the interceptors one by one, for lists such as
// those of go-grpc-middleware; the repository's examples/grpc shows its selector and
// recovery with the door, in the right order. A selector around the door itself lets calls pass
// without their lock.
//
// # Stopping a server
//
// GracefulStop lets handlers finish, and requests too that wait for their lock under
// WithWait, for as long as they may. When it returns, every lock is released.
//
// Stop ends the context of every request. Who waits for a lock gives up. A name that is held
// stays held, and renewed, until its handler has returned: one that takes no notice of its
// context does its work under the lock. Stop does not wait for that unless the server was
// made with grpc.WaitForHandlers(true), and GracefulStop does, even after a Stop. To stop in
// good order, and in time:
//
//	stopped := make(chan struct{})
//	go func() { srv.GracefulStop(); close(stopped) }()
//	select {
//	case <-stopped:
//	case <-time.After(20 * time.Second):
//		srv.Stop()
//	}
//	err := locks.Close(ctx) // after the server; it waits for handlers that still run
//
// What the process holds when it exits all the same comes free within one TTL.
package grpcmw
