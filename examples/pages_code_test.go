package examples_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/examples/demo/shoppb"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
	"github.com/holdfast-go/holdfast/httpmw/idempotency"
	"github.com/holdfast-go/holdfast/httpmw/redisstore"
	"github.com/holdfast-go/holdfast/taskmw"
)

// What follows is the code of the pages in docs; readme_test.go compares them.

var _ = []any{echoBind, httpBind, httpAnswers, grpcClient, httpIdempotency, taskRules, taskFromRequest, functionFence, ready, inspect, shutdown, faqCause} // need more than a lock

func echoRoutes(locks *core.Locker, ship, count echo.HandlerFunc) {
	e := echo.New()
	e.Use(middleware.Recover(), middleware.ContextTimeout(30*time.Second)) // outside the locks

	// One at a time for each order. A second request gets 409 at once.
	e.POST("/orders/:id/pay", pay, echomw.Lock(locks, "order:{id|int}"))

	// The same lock, so paying and shipping exclude each other. An order ships once: later requests get 409 for a day.
	e.POST("/orders/:id/ship", ship, echomw.Lock(locks, "order:{id|int}", core.WithDedup(24*time.Hour), core.WithDedupScope("ship")))

	// The name comes from the JSON body. A second request waits for up to 5 s.
	e.PUT("/stock", count, echomw.Lock(locks, "stock:{body:sku}", core.WithWait(5*time.Second)))
}

// PayRequest is what a client sends to pay.
type PayRequest struct {
	OrderID int64 `json:"order_id"`
	Cents   int64 `json:"cents"`
}

func echoBind(e *echo.Echo, locks *core.Locker) {
	e.POST("/pay", echomw.Bind(locks, "order:{OrderID}", func(c echo.Context, req *PayRequest) error {
		return c.JSON(http.StatusOK, req) // under the lock of req.OrderID
	}))
}

func httpBind(mux *http.ServeMux, locks *core.Locker) {
	mux.Handle("POST /pay", httpmw.Bind(locks, "order:{OrderID}", httpmw.JSON[PayRequest],
		func(w http.ResponseWriter, _ *http.Request, req *PayRequest) {
			_ = json.NewEncoder(w).Encode(req) // under the lock of req.OrderID
		}))
}

func httpRoutes(locks *core.Locker, pay, ship, count http.Handler) {
	mux := http.NewServeMux()

	// One at a time for each order. A second request gets 409 at once.
	mux.Handle("POST /orders/{id}/pay", httpmw.Lock(locks, "order:{id|int}")(pay))

	// The same lock, so paying and shipping exclude each other. An order ships once: later requests get 409 for a day.
	mux.Handle("POST /orders/{id}/ship", httpmw.Lock(locks, "order:{id|int}", core.WithDedup(24*time.Hour), core.WithDedupScope("ship"))(ship))

	// The name comes from the JSON body. A second request waits for up to 5 s.
	mux.Handle("PUT /stock", httpmw.Lock(locks, "stock:{body:sku}", core.WithWait(5*time.Second))(count))
}

func httpAnswers(w http.ResponseWriter, r *http.Request, locks *core.Locker, report func(context.Context) error) {
	err := locks.Do(r.Context(), "report:daily", report)
	if p := httpmw.ProblemFor(err); p != nil {
		p.ServeHTTP(w, r)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func httpConfig(locks *core.Locker) (func(http.Handler) http.Handler, error) {
	lock, err := httpmw.New(httpmw.Config{
		Locker:  locks,
		Key:     "order:{id|int}",
		Skipper: func(r *http.Request) bool { return r.URL.Query().Get("force") == "yes" },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, p *httpmw.Problem) {
			http.Error(w, "not now: "+p.Title, p.Status)
		},
	})
	return lock, err
}

func grpcRules(locks *core.Locker) *grpc.Server {
	srv := grpc.NewServer(grpcmw.ServerOptions(locks,
		// One at a time for each order. A second call gets ABORTED at once, and clients know how to retry.
		grpcmw.WithMethod("/shop.v1.Orders/Refund", "order:{order.id}"))...)
	return srv
}

var customerKey = key.MustParse("customer:{id}")

func customerName(ctx context.Context, _ *shoppb.RefundRequest) (string, error) {
	return customerKey.Name(userOf(ctx)) // the authenticated user, for example
}

func grpcFunction(locks *core.Locker) (*grpcmw.Interceptors, error) {
	// One at a time for each customer. A second call waits for up to 2 s.
	guard, err := grpcmw.New(locks,
		grpcmw.WithMethodFunc("/shop.v1.Orders/Refund", customerName, core.WithWait(2*time.Second)))
	return guard, err
}

func grpcAnnotations(locks *core.Locker) error {
	guard, err := grpcmw.New(locks, grpcmw.WithAnnotations())
	if err != nil {
		return err
	}
	srv := grpc.NewServer(guard.ServerOptions()...)
	srv.Stop()
	return nil
}

func grpcClient(address string, creds grpc.DialOption) error {
	conn, err := grpc.NewClient(address, creds, grpc.WithDefaultServiceConfig(`{"methodConfig": [{
	"name": [{"service": "shop.v1.Orders"}],
	"retryPolicy": {
		"maxAttempts": 5, "initialBackoff": "0.25s", "maxBackoff": "1s", "backoffMultiplier": 2,
		"retryableStatusCodes": ["ABORTED"]
	}
}]}`))
	if err != nil {
		return err
	}
	return conn.Close()
}

func httpClient(ctx context.Context, newRequest func(context.Context) (*http.Request, error)) (*http.Response, error) {
	for {
		req, err := newRequest(ctx) // a new one each time, since its body is used up
		if err != nil {
			return nil, err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err // nobody knows whether it was done: see the guide about idempotency
		}
		seconds, err := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 32) // the largest number if it is too large
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return res, nil // the answer
		}
		res.Body.Close()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Duration(seconds) * time.Second):
		}
	}
}

func httpIdempotency(mux *http.ServeMux, locks *core.Locker, rdb *redis.Client, pay http.Handler) {
	// account says whose keys they are: a value that the client cannot choose.
	account := func(r *http.Request) (string, error) { return userOf(r.Context()), nil }

	mux.Handle("POST /payments", idempotency.Middleware(locks, redisstore.New(rdb), account)(pay))
}

func grpcStop(srv *grpc.Server) {
	stopped := make(chan struct{})
	go func() { srv.GracefulStop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(10 * time.Second):
		srv.Stop() // ends the contexts of calls that still run
	}
}

func taskRules(locks *core.Locker, redisOpt asynq.RedisConnOpt, ship func(context.Context, *asynq.Task) error) *asynq.Server {
	cfg := asynq.Config{Concurrency: 10}
	taskmw.Configure(&cfg) // last, on a complete config: a held lock is not a failure
	srv := asynq.NewServer(redisOpt, cfg)

	mux := asynq.NewServeMux()
	mux.Use(taskmw.Middleware(locks,
		// One at a time for each order, and an order ships once.
		taskmw.WithType("order:ship", "order:{order_id}", core.WithDedup(24*time.Hour)),
		// All types that begin with "report:". Duplicates that arrive while one runs are finished unrun.
		taskmw.WithType("report:*", "{asynq:type}:{header:tenant|text}").OnConflict(taskmw.Skip)))
	mux.HandleFunc("order:ship", ship)
	return srv
}

func taskCron(mux *asynq.ServeMux, locks *core.Locker) {
	mux.Use(taskmw.Middleware(locks, taskmw.WithType("cleanup", "cron:cleanup",
		core.WithMinHold(30*time.Second)).OnConflict(taskmw.Skip))) // for a job of each minute
}

func taskFromRequest(ctx context.Context, client *asynq.Client) error {
	task := asynq.NewTask("order:ship", []byte(`{"order_id":42}`))
	_, err := taskmw.Enqueue(ctx, client, task, 10*time.Minute) // ctx is the request's, under its lock
	return err
}

func functionDo(ctx context.Context, locks *core.Locker) error {
	// Do waits for the name as long as ctx allows. fn's context ends with ctx, or when the lease is lost.
	err := locks.Do(ctx, "report:daily", func(ctx context.Context) error {
		if err := writeReport(ctx); err != nil {
			return err
		}
		return mailReport(ctx)
	})
	switch {
	case errors.Is(err, core.ErrHeld): // someone else has it
	case errors.Is(err, core.ErrUnavailable): // the lock service did not answer; nothing ran
	case errors.Is(err, core.ErrLost): // it ran, and lost the lease on the way
	}
	return err
}

func functionValue(ctx context.Context, locks *core.Locker) (int, error) {
	number, err := core.DoValue(ctx, locks, "invoice:numbers", nextNumber)
	return number, err
}

var orderKey = key.MustParse("order:{id|int}") // the same names as in the middlewares

func orderName(_ context.Context, r *refundRequest) (string, error) { return orderKey.Name(r.OrderID) }

func functionWrap(ctx context.Context, locks *core.Locker) (*refundReply, error) {
	guarded := core.Wrap(locks, orderName, refund, core.WithWait(2*time.Second))
	reply, err := guarded(ctx, &refundRequest{OrderID: "42"}) // holds "order:42" while refund runs
	return reply, err
}

func functionLease(ctx context.Context, locks *core.Locker) error {
	lease, err := locks.Acquire(ctx, "order:42")
	if err != nil {
		return err
	}
	err = ship(lease.Context())
	return lease.Finish(ctx, err) // Release, or the dedup marker too if err is nil; tells of a loss
}

func functionReentry(ctx context.Context, locks *core.Locker) error {
	err := locks.Do(ctx, "order:42", func(ctx context.Context) error {
		return locks.Do(ctx, "order:42", ship) // joins the outer lease: pass ctx on
	})
	return err
}

func functionDedup(ctx context.Context, locks *core.Locker) error {
	err := locks.Do(ctx, "order:42", ship, core.WithDedup(24*time.Hour), core.WithDedupScope("ship"))
	if errors.Is(err, core.ErrDuplicate) {
		return nil // it was shipped before
	}
	return err
}

func functionAll(ctx context.Context, locks *core.Locker) error {
	err := locks.DoAll(ctx, []string{"account:3", "account:7"}, transfer)
	return err
}

func functionShared(ctx context.Context, locks *core.Locker) error {
	err := locks.Do(ctx, "prices", readPrices, core.WithShared())
	return err
}

func functionLimit(ctx context.Context, locks *core.Locker) error {
	err := locks.Do(ctx, "printer", printPage, core.WithLimit(3))
	return err
}

func functionMinHold(ctx context.Context, locks *core.Locker) error {
	err := locks.Do(ctx, "cron:report", writeReport, core.WithMinHold(50*time.Second), core.WithWait(0))
	return err
}

func functionCampaign(ctx context.Context, locks *core.Locker, hostname string) error {
	err := locks.Campaign(ctx, "scheduler", func(ctx context.Context) error {
		slog.Info("this process is the leader")
		return schedule(ctx) // runs in one process; ctx ends with the caller, or when the lease is lost
	}, core.WithLabel(hostname))
	return err
}

func functionHandOff(ctx context.Context, lease *core.Lease, publish func(context.Context, string) error) error {
	err := lease.HandOff(ctx, 10*time.Minute, func(ctx context.Context, h core.Handoff) error {
		return publish(ctx, h.Encode()) // any channel that only the other side can read
	})
	return err
}

func functionAttach(ctx context.Context, locks *core.Locker, message string) error {
	handoff, err := core.ParseHandoff(message)
	if err != nil {
		return err
	}
	lease, err := locks.Attach(ctx, handoff) // or locks.DoAttached(ctx, handoff, ship)
	if err != nil {
		return err
	}
	return lease.Release(ctx)
}

func functionFence(ctx context.Context, db *sql.DB) error {
	f, err := core.FenceFor(ctx, "order:42") // an error, never 0, if there is no lease of this name, or no fence
	if err != nil {
		return err
	}
	res, err := db.ExecContext(ctx, `UPDATE orders SET state = $1, fence = $2 WHERE id = $3 AND fence <= $2`,
		"paid", fence.Number(f), 42)
	return fence.Wrote(res, err)
}

func functionConfirm(ctx context.Context) error {
	if err := core.Confirm(ctx); err != nil { // is enough of the lease left? It asks the lock service only if little is left
		return err
	}
	return callBank(ctx)
}

// ready answers a readiness probe. The reason goes to the log: it may quote the server.
func ready(locks *core.Locker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := locks.Ready(r.Context()); err != nil {
			slog.WarnContext(r.Context(), "not ready", slog.Any("error", err))
			http.Error(w, "the lock service is unavailable", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// inspect mounts the page below /locks/, for those whom requireLogin lets through.
func inspect(mux *http.ServeMux, d driver.Driver, requireLogin func(http.Handler) http.Handler) (*core.Locker, error) {
	seen := inspector.NewRecorder()
	locks, err := core.New(d, core.WithObserver(seen.Observe))
	if err != nil {
		return nil, err
	}
	mux.Handle("/locks/", requireLogin(inspector.New(locks, inspector.WithRecorder(seen))))
	return locks, nil
}

// shutdown takes 25 s at most; the orchestrator gives 30.
func shutdown(web *http.Server, workers *asynq.Server, locks *core.Locker, rdb *redis.Client) error {
	workers.Stop() // take no new tasks from now on

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	_ = locks.Drain(ctx) // new work is answered with 503 and Retry-After; what runs finishes
	cancel()

	ctx, cancel = context.WithTimeout(context.Background(), 7*time.Second) // of its own: a long task can use up the other
	err := web.Shutdown(ctx)                                               // and then nobody is connected any more
	cancel()
	if err != nil {
		err = errors.Join(err, web.Close()) // ends the contexts of requests that still run
	}

	workers.Shutdown() // takes asynq.Config.ShutdownTimeout at most: leave it at 8 s

	ctx, cancel = context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = errors.Join(err, locks.Close(ctx)) // tells the rest to stop, waits for it, releases
	return errors.Join(err, rdb.Close())
}

func faqCause(ctx context.Context) {
	cause := context.Cause(ctx)
	if lost, ok := errors.AsType[*core.LostError](cause); ok {
		slog.Warn("told to stop", "lock", lost.Name, "reason", lost.Reason)
	}
}

type (
	refundRequest struct{ OrderID string }
	refundReply   struct{}
)

// What the snippets do under their locks.

func refund(context.Context, *refundRequest) (*refundReply, error) { return new(refundReply), nil }
func ship(ctx context.Context) error                               { return ctx.Err() }
func transfer(ctx context.Context) error                           { return ctx.Err() }
func writeReport(ctx context.Context) error                        { return ctx.Err() }
func mailReport(ctx context.Context) error                         { return ctx.Err() }
func readPrices(ctx context.Context) error                         { return ctx.Err() }
func printPage(ctx context.Context) error                          { return ctx.Err() }
func schedule(ctx context.Context) error                           { return ctx.Err() }
func callBank(ctx context.Context) error                           { return ctx.Err() }
func nextNumber(ctx context.Context) (int, error)                  { return 1, ctx.Err() }
func userOf(context.Context) string                                { return "alice" }
