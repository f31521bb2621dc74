// Package grpcmw holds a lock around gRPC methods, unary and streaming. The lock's name comes from
// the request.
//
//	srv := grpc.NewServer(grpcmw.ServerOptions(locks,
//		grpcmw.WithMethod("/shop.v1.Orders/Refund", "order:{order.id}"))...)
//
// While a handler runs, nobody else has the same name, in any middleware on any machine. The
// handler's context ends with the request or with the lock, whichever is first. core.FromContext
// finds the lease in it. The following table shows what a client sees of the lock itself. A status or
// any other error that the handler returns is sent unchanged, except errors of core, whose text has
// names and holders: see [StatusFor].
//
//	held                   ABORTED, RetryInfo, ErrorInfo LOCK_HELD, pushback 250 ms ± 20%
//	key missing, invalid   INVALID_ARGUMENT, ErrorInfo LOCK_KEY_INVALID
//	unavailable, closed    UNAVAILABLE, RetryInfo, ErrorInfo LOCK_UNAVAILABLE
//	request ended first    DEADLINE_EXCEEDED or CANCELED
//	lost while it ran      ABORTED, ErrorInfo LOCK_LOST, pushback -1
//	duplicate (WithDedup)  ALREADY_EXISTS, ErrorInfo LOCK_DUPLICATE
//	the server's fault     INTERNAL, and a line in the log: see [WithLogger]
//
// The pushback is the trailer grpc-retry-pushback-ms. A client whose retryPolicy lists ABORTED waits
// that long and tries again. After a loss it does not try again. In Go such a policy is
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
// With [WithAnnotations] you write the rule next to the method. Package holdfastpb says how to import
// the option:
//
//	rpc Refund(RefundRequest) returns (RefundReply) {
//	  option (holdfast.v1.lock) = {key: "order:{order.id}", wait: "2s"};
//	}
//
// [New] reads the rules once, from the descriptors of all generated code that is linked into the
// program (protoregistry.GlobalFiles). They are complete before main begins, so services may be
// registered with the server later. New cannot know which services will be registered. So a rule of a
// service that this program only calls has to work too, or must be replaced by [WithMethod].
//
// Methods without generated code are not seen, and so not locked: a service of descriptors that were
// loaded at run time, or the methods behind grpc.UnknownServiceHandler. A test can compare
// [Interceptors.Methods] with what should be locked.
//
// # Keys
//
// A bare source is a path of proto field names in the request, {order.id}. JSON names are not
// accepted. {metadata:x|text} is incoming metadata, which is text and needs a form, see [key.Form]. Several
// different values make it invalid.
// {grpc:method} is the full method, {grpc:service} its service. Every path is checked against the
// descriptors when the interceptors are made. Fields that do not exist, lists, maps, bytes, floating
// point and whole messages are refused.
//
// A field that is not set is missing, even if proto2 has a default for it. In proto3, 0, false and
// the first enum value of a field without "optional" look like an unset field, and are missing too.
// In an optional field that is set they are values. An empty string is always missing. An integer
// makes the same name as its decimal digits. A bool is "true" or "false". An enum is its number,
// which does not change from one version of the schema to the next.
//
// # Streams
//
// The lock is taken before the handler runs. A key with a request field, and every key function, needs
// the request first: in a server-streaming method, the interceptor receives its one message, and hands
// it to the handler's first RecvMsg. Where the client sends a stream, each message may name something
// else, so such a key is an error when the interceptors are made. Use {metadata:x|text} there.
//
// The stream's context ends with the lock. After a loss RecvMsg, SendMsg and SendHeader return
// LOCK_LOST. A call that is waiting for the client returns it only after that wait. So a handler that
// waits long should watch its context too.
//
// # Other interceptors
//
// Put interceptors that authenticate, log or recover before this one: a panic passes through it, and
// the lock is released on the way. Put interceptors that reject requests before it too, so that only
// requests that will be served wait for a lock. [New] gives the interceptors one by one, for lists
// such as those of go-grpc-middleware. The repository's examples/grpc shows its selector and recovery
// with this middleware, in the right order. Do not put a selector around this middleware itself: it
// lets calls pass without their lock.
//
// # Stopping a server
//
// GracefulStop lets handlers finish. It also lets requests that wait for their lock under WithWait
// finish, for as long as they may wait. When it returns, every lock is released.
//
// Stop ends the context of every request. Waiters for a lock give up. A name that is held stays held,
// and renewed, until its handler has returned. So a handler that ignores its context does its work
// under the lock. Stop waits for such handlers only if the server was made with
// grpc.WaitForHandlers(true). GracefulStop waits for them, even after a Stop. To stop in good order,
// and in time:
//
//	_ = locks.Drain(ctx) // new calls get UNAVAILABLE, those under way go on
//	stopped := make(chan struct{})
//	go func() { srv.GracefulStop(); close(stopped) }()
//	select {
//	case <-stopped:
//	case <-time.After(20 * time.Second):
//		srv.Stop()
//	}
//	err := locks.Close(ctx) // after the server; it waits for handlers that still run
//
// If the process exits while it still holds names, they come free within one TTL.
package grpcmw
