package recipe_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/go-kratos/kratos/v2/errors"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"google.golang.org/grpc/codes"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	gorilla "github.com/holdfast-go/holdfast/examples/recipes/gorilla"
	"github.com/holdfast-go/holdfast/examples/recipes/internal/recipetest"
	recipe "github.com/holdfast-go/holdfast/examples/recipes/kratos"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// check is an operation that every program with gRPC knows.
const check = "/grpc.health.v1.Health/Check"

// service answers a check if the name of its service is locked.
type service struct {
	health.UnimplementedHealthServer
	t *testing.T
}

func (s *service) Check(ctx context.Context, _ *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	if x, ok := core.FromContext(ctx); !ok || x.Name() != "service:orders" {
		s.t.Errorf("under %v", x)
	}
	return &health.HealthCheckResponse{Status: health.HealthCheckResponse_SERVING}, nil
}

// handle is what kratos' generated code makes of an operation.
func handle(s *service) khttp.HandlerFunc {
	return func(ctx khttp.Context) error {
		in := health.HealthCheckRequest{Service: ctx.Query().Get("service")}
		khttp.SetOperation(ctx, check)
		h := ctx.Middleware(func(ctx context.Context, req any) (any, error) {
			return s.Check(ctx, req.(*health.HealthCheckRequest))
		})
		out, err := h(ctx, &in)
		if err != nil {
			return err
		}
		return ctx.Result(http.StatusOK, out)
	}
}

func rules(t *testing.T, locks *core.Locker) *grpcmw.Interceptors {
	t.Helper()
	i, err := grpcmw.New(locks, grpcmw.WithMethod(check, "service:{service}"))
	locktest.OK(t, err)
	return i
}

func TestOperationsOverHTTPAreLockedByTheirMessage(t *testing.T) {
	t.Parallel()
	locks := recipetest.NewLocker(t)
	srv := khttp.NewServer(khttp.Middleware(recipe.Middleware(rules(t, locks))))
	srv.Route("/").POST("/check", handle(&service{t: t}))
	if w := recipetest.Call(t, srv, "/check?service=orders"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	locktest.Hold(t, locks, "service:orders", core.WithLabel("host-secret"))
	w := recipetest.Call(t, srv, "/check?service=orders")
	if w.Code != http.StatusConflict || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), grpcmw.ReasonHeld) ||
		strings.Contains(w.Body.String(), "service:orders") || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := recipetest.Call(t, srv, "/check"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), grpcmw.ReasonKeyInvalid) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestRoutesByHandAreGorillas(t *testing.T) {
	t.Parallel()
	locks := recipetest.NewLocker(t)
	srv := khttp.NewServer()
	var name string
	pay := func(ctx khttp.Context) error {
		x, _ := core.FromContext(ctx)
		name = x.Name()
		return ctx.String(http.StatusOK, "paid")
	}
	srv.Route("/").POST("/orders/{id}/pay", pay, gorilla.PathValues, httpmw.Lock(locks, "order:{id|int}"))
	if w := recipetest.Call(t, srv, "/orders/42/pay"); w.Code != http.StatusOK || name != "order:42" {
		t.Errorf("%d %s under %q", w.Code, w.Body, name)
	}
	locktest.Hold(t, locks, "order:42")
	if w := recipetest.Call(t, srv, "/orders/42/pay"); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), httpmw.TypeHeld) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestOperationsOverGRPCAreLockedByTheirMessage(t *testing.T) {
	t.Parallel()
	locks := recipetest.NewLocker(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	locktest.OK(t, err)
	srv := kgrpc.NewServer(kgrpc.Listener(listener), kgrpc.CustomHealth(), kgrpc.Middleware(recipe.Middleware(rules(t, locks))))
	health.RegisterHealthServer(srv, &service{t: t})
	served := make(chan error, 1)
	go func() { served <- srv.Start(t.Context()) }()
	t.Cleanup(func() {
		_ = srv.Stop(context.WithoutCancel(t.Context()))
		locktest.OK(t, <-served)
	})
	conn, err := kgrpc.DialInsecure(t.Context(), kgrpc.WithEndpoint(listener.Addr().String()))
	locktest.OK(t, err)
	defer conn.Close()
	client := health.NewHealthClient(conn)
	_, err = client.Check(t.Context(), &health.HealthCheckRequest{Service: "orders"})
	locktest.OK(t, err)
	locktest.Hold(t, locks, "service:orders", core.WithLabel("host-secret"))
	_, err = client.Check(t.Context(), &health.HealthCheckRequest{Service: "orders"})
	if e := errors.FromError(err); e.GetReason() != grpcmw.ReasonHeld || status.Code(err) != codes.Aborted || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
