package redislock

import (
	"context"
	"iter"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// page is how many keys one SCAN looks at, and so about how many names are asked for together.
const page = 100

// walk goes through the keys of all servers with SCAN, and reads what those of a page stand for. An error
// comes last.
func walk[T any](ctx context.Context, s *Store, pattern string, read func(ctx context.Context, keys []string) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		nodes, err := s.nodes(ctx)
		if err != nil {
			yield(none, classify(err))
			return
		}
		for _, node := range nodes {
			for cursor, more := uint64(0), true; more; more = cursor != 0 {
				keys, next, err := node.Scan(ctx, cursor, pattern, page).Result()
				var all []T
				if err == nil {
					all, err = read(ctx, keys)
				}
				if err != nil {
					yield(none, classify(err))
					return
				}
				for _, one := range all {
					if !yield(one, nil) {
						return
					}
				}
				cursor = next
			}
		}
	}
}

// nodes returns the servers, each of which has a part of the keys.
func (s *Store) nodes(ctx context.Context) ([]redis.Cmdable, error) {
	cluster, ok := s.rdb.(*redis.ClusterClient)
	if !ok {
		return []redis.Cmdable{s.rdb}, nil
	}
	var mu sync.Mutex // protects nodes
	var nodes []redis.Cmdable
	err := cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return nil
	})
	return nodes, err
}

// globs escapes the characters that have a meaning in patterns of Redis.
var globs = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
