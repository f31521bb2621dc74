package redislock

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

var (
	inspectScript = newScript("inspect.lua")
	evictScript   = newScript("evict.lua")
)

// Inspect implements inspect.Inspector. It runs one script that only reads. While the slot of a name moves to
// another node of a Cluster, the queue and those who share the name may be missing.
func (s *Store) Inspect(ctx context.Context, name string) (inspect.LeaseInfo, error) {
	reply, err := s.run(ctx, s.inspection(name))
	if err != nil {
		return inspect.LeaseInfo{}, err
	}
	return leaseInfo(name, reply)
}

// Leases implements inspect.Inspector. It walks through the server's keys with SCAN, 100 at a time,
// so that it does not block other clients. Its cost grows with the number of all keys in the
// database.
//
// Besides the permissions for locking, it needs one more: scan. docs/backends/redis.md has the permissions
// of a user that only inspects, and can do no harm.
func (s *Store) Leases(ctx context.Context, prefix string) iter.Seq2[inspect.LeaseInfo, error] {
	pattern := globs.Replace(s.lockKey(prefix)) + "*"
	return walk(ctx, s, pattern, func(ctx context.Context, keys []string) ([]inspect.LeaseInfo, error) {
		var names []string
		for _, key := range keys {
			if name := strings.TrimPrefix(key, s.prefix); !strings.ContainsAny(name, "{}") { // else it is no lock
				names = append(names, name)
			}
		}
		infos, err := s.look(ctx, names)
		return slices.DeleteFunc(infos, func(info inspect.LeaseInfo) bool { return !info.Held }), err
	})
}

// look asks for all names in one round trip.
func (s *Store) look(ctx context.Context, names []string) ([]inspect.LeaseInfo, error) {
	asked := make([]command, len(names))
	for i, name := range names {
		asked[i] = s.inspection(name)
	}
	infos := make([]inspect.LeaseInfo, len(names))
	for i, p := range s.trip(ctx, asked) {
		reply, err := p.Answer, p.Err
		if isMoving(err) { // by itself, it needs only the lock
			reply, err = s.run(ctx, asked[i])
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
	holders, notes := s.holdersKeys(name)
	return command{
		script: inspectScript, keys: 5, least: 1,
		parts: []string{s.lockKey(name), line, beats, holders, notes, decimal(inspect.MaxLine)},
	}
}

// leaseInfo reads the answer of inspect.lua.
func leaseInfo(name string, reply any) (info inspect.LeaseInfo, err error) {
	const parts = 9
	answer, _ := reply.([]any)
	if len(answer) != parts {
		return info, errNoInfo
	}
	kind, _ := answer[0].(int64)
	info = inspect.LeaseInfo{
		Name: name, Held: kind != 0, Foreign: kind == 2, Kept: kind == 3 || kind == 5, Remaining: max(0, duration(answer[3])),
	}
	info.Label, _ = answer[1].(string)
	if digits, _ := answer[2].(string); digits != "" {
		if info.Fence, err = strconv.ParseUint(digits, 10, 53); err != nil {
			return info, errNoInfo
		}
	}
	info.Handle, _ = answer[4].(string)
	holders, _ := answer[5].([]any)
	for ; len(holders) >= 5; holders = holders[5:] {
		handle, _ := holders[0].(string)
		limit, _ := holders[2].(int64)
		label, _ := holders[4].(string)
		info.Holders = append(info.Holders, inspect.HolderInfo{
			Label: label, Handle: handle, Remaining: duration(holders[1]), Limit: int(limit), HeldFor: duration(holders[3]),
		})
	}
	line, _ := answer[6].([]any)
	for ; len(line) >= 3; line = line[3:] {
		label, _ := line[2].(string)
		info.Line = append(info.Line, inspect.WaiterInfo{Label: label, Waited: duration(line[0]), Alive: line[1] == int64(1)})
	}
	if info.Kind, info.Limit = holdKind(kind, info.Holders); kind == 6 {
		info.Kind, info.Limit, info.Fence = inspect.HoldLimited, int(info.Fence), 0 //nolint:gosec // G115: at most 2^53
	}
	now, _ := answer[7].(int64)
	if since, _ := answer[8].(int64); since > 0 {
		info.HeldFor = max(0, duration(now-since))
	}
	if info.Kind == inspect.HoldShared {
		info.HeldFor = sinceFence(info.Fence, now)
	}
	for _, h := range info.Holders {
		info.HeldFor = max(info.HeldFor, h.HeldFor)
	}
	return info, nil
}

// holdKind reads the first part of the answer of inspect.lua.
func holdKind(kind int64, holders []inspect.HolderInfo) (inspect.HoldKind, int) {
	limit := 0
	for _, h := range holders {
		if limit == 0 || h.Limit < limit {
			limit = h.Limit
		}
	}
	switch kinds := []inspect.HoldKind{
		"", inspect.HoldExclusive, inspect.HoldForeign, inspect.HoldKept, inspect.HoldShared, inspect.HoldHandoff,
	}; {
	case kind == 4 && limit > 0:
		return inspect.HoldLimited, limit
	case 0 <= kind && int(kind) < len(kinds):
		return kinds[kind], 0
	default:
		return "", 0
	}
}

// sinceFence is how long ago a fence was minted, now being the server's clock in ms. A fence is that
// clock in microseconds, or one more than the last fence if that is larger. So it is a time, except
// where the counter has come from a server whose clock was ahead.
func sinceFence(fence uint64, now int64) time.Duration {
	if fence == 0 {
		return 0
	}
	const ancient = 10 * 365 * 24 * time.Hour                                           // then it is no time
	held := time.Duration(now)*time.Millisecond - time.Duration(fence)*time.Microsecond //nolint:gosec // G115: at most 2^53
	if held < 0 || held > ancient {
		return 0
	}
	return held
}

// errNoInfo does not quote the reply, for the reason of errNoGrant.
var errNoInfo = errors.New("redislock: unknown reply to an inspection")

func duration(ms any) time.Duration {
	n, _ := ms.(int64)
	return time.Duration(n) * time.Millisecond
}

// Evict implements inspect.Inspector. It runs one script, and needs the same permissions as locking.
func (s *Store) Evict(ctx context.Context, name, handle string) error {
	cmd := s.eviction(name, handle)
	reply, err := s.run(ctx, cmd)
	if s.relaid(err) {
		cmd = s.eviction(name, handle)
		reply, err = s.run(ctx, cmd)
	}
	if reply, ok := reply.([]any); ok && err == nil && len(reply) == 2 {
		return refusal(reply)
	}
	return s.released(cmd, reply, err)
}

func (s *Store) eviction(name, handle string) command {
	line, beats := s.lineKeys(name)
	holders, notes := s.holdersKeys(name)
	return command{
		script: evictScript, keys: 6,
		parts: []string{
			s.lockKey(name), line, beats, holders, s.layout.fence(name), notes, handle, s.subscribers.channels(name),
		},
	}
}
