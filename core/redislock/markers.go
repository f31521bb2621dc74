package redislock

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// doneKind stands between the name and the scope in a marker's key: see keys.go.
const doneKind = "}:v1:done:"

// Markers implements inspect.MarkerInspector. It walks through the server's keys with SCAN, as Leases
// does, and needs the same permissions.
func (s *Store) Markers(ctx context.Context, prefix string) iter.Seq2[inspect.MarkerInfo, error] {
	return walk(ctx, s, globs.Replace("{"+s.lockKey(prefix))+"*"+doneKind+"*", s.readMarkers)
}

// readMarkers asks for all markers in one round trip. One that has gone meanwhile is left out. It asks through the
// client, which follows: the node that has told of a key refuses to show it while the key's slot moves there.
func (s *Store) readMarkers(ctx context.Context, keys []string) (infos []inspect.MarkerInfo, err error) {
	pipe := s.rdb.Pipeline()
	labels, ends := make([]*redis.StringCmd, len(keys)), make([]*redis.DurationCmd, len(keys))
	for i, key := range keys {
		labels[i], ends[i] = pipe.Get(ctx, key), pipe.PTTL(ctx, key)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, key := range keys {
		label, err := labels[i].Result()
		left, errEnds := ends[i].Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err := errors.Join(err, errEnds); err != nil {
			return nil, err
		}
		name, scope, ours := strings.Cut(strings.TrimPrefix(key, "{"+s.prefix), doneKind) // no name has a brace
		if ours && left > 0 {
			infos = append(infos, inspect.MarkerInfo{Name: name, Scope: scope, Label: label, Remaining: left})
		}
	}
	return infos, nil
}

// Unmark implements inspect.MarkerInspector.
func (s *Store) Unmark(ctx context.Context, name, scope string) error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return err
	}
	n, err := s.rdb.Del(ctx, s.doneKey(driver.Claim{Name: name, Scope: scope})).Result()
	if err != nil {
		return classify(err)
	}
	if n == 0 {
		return driver.ErrNotOwner
	}
	return nil
}
