package main

import (
	"context"
	"net"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/examples/grpc/orderspb"
	"github.com/holdfast-go/holdfast/grpcmw"
)

// servers are two servers, as two machines would run them: all they share is the lock service.
type servers struct {
	redis *miniredis.Miniredis
	each  []*server
}

type server struct {
	rdb    *redis.Client
	locks  *core.Locker
	grpc   *grpc.Server
	addr   string
	locked []string // methods
	served chan error
}

func start(ctx context.Context, chain func(*grpcmw.Interceptors) []grpc.ServerOption) (*servers, error) {
	s := &servers{redis: miniredis.NewMiniRedis()}
	if err := s.redis.Start(); err != nil {
		return nil, err
	}
	for range 2 {
		one, err := serve(ctx, s.redis.Addr(), chain)
		if err != nil {
			s.stop(ctx)
			return nil, err
		}
		s.each = append(s.each, one)
	}
	return s, nil
}

func serve(ctx context.Context, redisAddr string, chain func(*grpcmw.Interceptors) []grpc.ServerOption) (*server, error) {
	rdb := redis.NewClient(&redis.Options{Addr: redisAddr})
	locks, err := core.New(redislock.New(rdb))
	if err != nil {
		return nil, err
	}
	// Every method that has the option (holdfast.v1.lock). A rule that cannot work would end
	// the program here, with the method's name.
	locking, err := grpcmw.New(locks, grpcmw.WithAnnotations())
	if err != nil {
		return nil, err
	}
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	srv := grpc.NewServer(chain(locking)...)
	orderspb.RegisterOrdersServer(srv, orders{})
	healthpb.RegisterHealthServer(srv, health.NewServer())
	s := &server{rdb, locks, srv, lis.Addr().String(), locking.Methods(), make(chan error, 1)}
	go func() { s.served <- srv.Serve(lis) }()
	return s, nil
}

// stop ends everything in good order: the servers, then the locks, then what they need.
func (s *servers) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for _, one := range s.each {
		end := context.AfterFunc(ctx, one.grpc.Stop) // handlers that take too long
		one.grpc.GracefulStop()
		end()
		<-one.served
		_ = one.locks.Close(ctx)
		_ = one.rdb.Close()
	}
	s.redis.Close()
}
