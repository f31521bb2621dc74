package redislock

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// leaving is set while a goroutine closes connections.
type leaving struct{ atomic.Bool }

// leaveReplica closes the client's idle connections if the server has become a replica. After a failover the
// client's address may mean another server, as it does with one endpoint by DNS, while old connections go on to
// the old one. go-redis closes a connection that answers READONLY by itself. But it does not see the answer that
// a command got inside a script: so a command for a key that nobody has asks for the same answer again, by itself and
// in a pipeline. From 9.23 on, go-redis keeps connections for these apart.
//
// Subscriptions stay where they are. The old master passes on what is published at the new one.
func (s *Store) leaveReplica(ctx context.Context, errs ...error) {
	rdb, ok := s.rdb.(*redis.Client)
	if !ok || !anyReadOnly(errs) || !s.leaving.CompareAndSwap(false, true) {
		return
	}
	defer s.leaving.Store(false)
	for range rdb.PoolStats().IdleConns + 1 {
		single, piped := s.nobodys(ctx), s.nobodys(ctx)
		_ = rdb.Process(ctx, single) // the error is in it
		trip := rdb.Pipeline()
		_ = trip.Process(ctx, piped)
		_, _ = trip.Exec(ctx)
		if !redis.IsReadOnlyError(single.Err()) && !redis.IsReadOnlyError(piped.Err()) {
			return // they lead to the master now, or the call is over
		}
	}
}

// nobodys is a command for a key that nobody has.
func (s *Store) nobodys(ctx context.Context) redis.Cmder {
	return private{once: once{redis.NewCmd(ctx, "del", s.sideKey("", magic))}} // magic is in no name
}

// anyReadOnly says whether a replica has answered. Before Redis 7, a script's error begins with other words.
func anyReadOnly(errs []error) bool {
	for _, err := range errs {
		if err != nil && strings.Contains(err.Error(), "READONLY ") {
			return true
		}
	}
	return false
}
