package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core/driver"
)

func (s *Store) location() string { return strings.Join(s.client.Endpoints(), ", ") }

// What an operator reads. core logs these texts, so nothing of the server's is in them.
const (
	adviceUnreachable = "no member of etcd can be reached: check the endpoints and the TLS of the client, and whether they are up"
	adviceForbidden   = "etcd does not let this user do that: it needs read and write on the prefix of the locks, as docs/backends/etcd.md has it"
	adviceNoUser      = "etcd wants a user and a password: set Username and Password of the client"
	adviceFull        = "etcd takes no writes, since its database has reached its quota: compact and defragment it, then etcdctl alarm disarm"
	adviceNoLeader    = "etcd has no leader: a majority of its members has to be up, and connected"
)

// explain adds to an answer of etcd what to do about it.
func explain(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return driver.Refused(driver.Because(err, adviceForbidden))
	case errors.Is(err, rpctypes.ErrUserEmpty):
		return driver.Refused(driver.Because(err, adviceNoUser))
	case errors.Is(err, rpctypes.ErrNoSpace):
		return driver.Because(err, adviceFull)
	case errors.Is(err, rpctypes.ErrNoLeader):
		return driver.Unavailable(driver.Because(err, adviceNoLeader))
	default:
		return err
	}
}

// reach waits until the client has a connection. Without this, it would try in silence until ctx ends, and nobody would
// be told why: gRPC tells only those who make a request, and the client itself sends this one once. The error says that
// nothing was sent.
func (s *Store) reach(ctx context.Context) error {
	conn := s.client.ActiveConnection()
	var err error
	if ctx.Err() == nil && conn.GetState() != connectivity.Ready {
		_, err = health.NewHealthClient(conn).Check(ctx, &health.HealthCheckRequest{})
	}
	if ctx.Err() != nil || status.Code(err) != codes.Unavailable { // after any other answer, the request itself says more
		return driver.NotSent(ctx.Err())
	}
	err = fmt.Errorf("etcdlock: %s: %s", s.location(), status.Convert(err).Message())
	return driver.NotSent(driver.Unavailable(driver.Because(err, adviceUnreachable)))
}
