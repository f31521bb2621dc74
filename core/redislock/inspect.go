package redislock

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

var (
	inspectScript = newScript("inspect.lua")
	evictScript   = newScript("evict.lua")
)

// page is how many keys one SCAN looks at, and so about how many names one round trip asks for.
const page = 100

// Inspect implements driver.Inspector. It runs one script that only reads.
func (s *Store) Inspect(ctx context.Context, name string) (driver.LeaseInfo, error) {
	reply, err := s.run(ctx, s.inspection(name))
	if err != nil {
		return driver.LeaseInfo{}, err
	}
	return leaseInfo(name, reply)
}

// Leases implements driver.Inspector. It walks through the server's keys with SCAN, 100 at a time,
// so that it does not block other clients. Its cost grows with the number of all keys in the
// database.
//
// Besides the permissions for locking, it needs one more: scan. docs/redis.md has the permissions
// of a user that only inspects, and can do no harm.
func (s *Store) Leases(ctx context.Context, prefix string) iter.Seq2[driver.LeaseInfo, error] {
	return func(yield func(driver.LeaseInfo, error) bool) {
		nodes, err := s.nodes(ctx)
		if err != nil {
			yield(driver.LeaseInfo{}, classify(err))
			return
		}
		for _, node := range nodes {
			if !s.walk(ctx, node, prefix, yield) {
				return
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

// walk goes through the keys of one server, and says whether to go on with the next server.
func (s *Store) walk(ctx context.Context, node redis.Cmdable, prefix string, yield func(driver.LeaseInfo, error) bool) bool {
	pattern := globs.Replace(s.lockKey(prefix)) + "*"
	for cursor := uint64(0); ; {
		keys, next, err := node.Scan(ctx, cursor, pattern, page).Result()
		var infos []driver.LeaseInfo
		if err == nil {
			infos, err = s.look(ctx, keys)
		}
		if err != nil {
			yield(driver.LeaseInfo{}, classify(err))
			return false
		}
		for _, info := range infos {
			if info.Held && !yield(info, nil) {
				return false
			}
		}
		if cursor = next; cursor == 0 {
			return true
		}
	}
}

// globs escapes the characters that have a meaning in patterns of Redis.
var globs = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// look asks for all names in one round trip.
func (s *Store) look(ctx context.Context, keys []string) ([]driver.LeaseInfo, error) {
	var names []string
	var asked []command
	var sent []*redis.Cmd
	pipe := s.rdb.Pipeline()
	for _, key := range keys {
		name := strings.TrimPrefix(key, s.prefix)
		if strings.ContainsAny(name, "{}") { // a key of ours, but not a lock
			continue
		}
		c := s.inspection(name)
		cmd := c.evalsha(ctx)
		names, asked, sent = append(names, name), append(asked, c), append(sent, cmd)
		_ = pipe.Process(ctx, private{once{cmd}}) // only puts it there
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	infos := make([]driver.LeaseInfo, len(names))
	for i, cmd := range sent {
		reply, err := cmd.Result()
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			reply, err = asked[i].whole(ctx, s.rdb, replicas{})
		}
		if err == nil {
			infos[i], err = leaseInfo(names[i], reply)
		}
		if err != nil {
			return nil, err
		}
	}
	return infos, nil
}

func (s *Store) inspection(name string) command {
	line, beats := s.lineKeys(name)
	return command{
		script: inspectScript, keys: 4,
		parts: []string{s.lockKey(name), line, beats, s.holdersKey(name), decimal(driver.MaxLine)},
	}
}

// leaseInfo reads the answer of inspect.lua.
func leaseInfo(name string, reply any) (info driver.LeaseInfo, err error) {
	const parts = 7
	answer, _ := reply.([]any)
	if len(answer) != parts {
		return info, errNoInfo
	}
	kind := answer[0]
	info = driver.LeaseInfo{
		Name: name, Held: kind != int64(0), Foreign: kind == int64(2), Kept: kind == int64(3), Remaining: max(0, duration(answer[3])),
	}
	info.Label, _ = answer[1].(string)
	if digits, _ := answer[2].(string); digits != "" {
		if info.Fence, err = strconv.ParseUint(digits, 10, 53); err != nil {
			return info, errNoInfo
		}
	}
	info.Handle, _ = answer[4].(string)
	holders, _ := answer[5].([]any)
	for ; len(holders) >= 3; holders = holders[3:] {
		handle, _ := holders[0].(string)
		limit, _ := holders[2].(int64)
		info.Holders = append(info.Holders, driver.HolderInfo{Handle: handle, Remaining: duration(holders[1]), Limit: int(limit)})
	}
	line, _ := answer[6].([]any)
	for ; len(line) >= 2; line = line[2:] {
		info.Line = append(info.Line, driver.WaiterInfo{Waited: duration(line[0]), Alive: line[1] == int64(1)})
	}
	return info, nil
}

// errNoInfo does not quote the reply, for the reason of errNoGrant.
var errNoInfo = errors.New("redislock: unknown reply to an inspection")

func duration(ms any) time.Duration {
	n, _ := ms.(int64)
	return time.Duration(n) * time.Millisecond
}

// Evict implements driver.Inspector. It runs one script, and needs the same permissions as locking.
func (s *Store) Evict(ctx context.Context, name string, h driver.Holder) error {
	fence := ""
	if h.Fence > 0 {
		fence = strconv.FormatUint(h.Fence, 10)
	}
	line, beats := s.lineKeys(name)
	cmd := command{
		script: evictScript, keys: 4,
		parts: []string{s.lockKey(name), line, beats, s.holdersKey(name), fence, h.Handle, s.hubs.channels(name)},
	}
	reply, err := s.run(ctx, cmd)
	if reply, ok := reply.([]any); ok && err == nil && len(reply) == 2 {
		return refusal(reply)
	}
	if reply == int64(2) && err == nil {
		return driver.ErrSeveral
	}
	return cmd.released(reply, err)
}
