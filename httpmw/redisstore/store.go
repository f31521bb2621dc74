// Package redisstore keeps the answers of package idempotency in Redis.
//
//	idempotency.Middleware(locks, redisstore.New(rdb), account)
//
// Each answer is one key with a TTL. It works with a single server, Sentinel and Cluster. What a failover
// loses, or eviction removes, runs again when it is repeated: use a Redis that does not evict.
package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/httpmw/idempotency"
)

// Store is a store for answers. Make it with [New]. The client stays yours, to close.
type Store struct {
	rdb    redis.Cmdable
	prefix string
}

var _ idempotency.Store = (*Store)(nil)

// Option configures a [Store].
type Option func(*Store)

// WithPrefix sets what stands before each key. The default is "holdfast-answer:", which is no
// prefix of locks: what begins with theirs is shown as a lock of other software. The last one wins.
func WithPrefix(prefix string) Option { return func(s *Store) { s.prefix = prefix } }

// New returns a store on a client. It does no I/O.
func New(rdb redis.Cmdable, opts ...Option) *Store {
	s := &Store{rdb: rdb, prefix: "holdfast-answer:"}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Load implements [idempotency.Store]. GETEX without an option only reads. But it counts as a write, so no client sends
// it to a replica, which may not know yet what was answered.
func (s *Store) Load(ctx context.Context, key string) ([]byte, error) {
	raw, err := s.rdb.GetEx(ctx, s.prefix+key, redis.KeepTTL).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return raw, err
}

// Save implements [idempotency.Store]. A lost reply does no harm: what is there stays.
func (s *Store) Save(ctx context.Context, key string, answer []byte, window time.Duration) error {
	err := s.rdb.SetArgs(ctx, s.prefix+key, answer, redis.SetArgs{Mode: "NX", TTL: window}).Err()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}
