package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/fence"
)

var guardScript = newScript("guard.lua")

// guardMoves is how long a guarded command waits while its keys are being moved.
const guardMoves = 2 * time.Second

// Guard runs a command that writes a Redis key only if no larger fence was seen for the key. So it
// refuses the late write of a holder that was paused. Check and command are one step at the
// server. Package fence explains fencing.
//
// A Guard remembers the fence in a key beside the guarded one, in its Cluster slot. That costs
// about 130 bytes and twice the length of the key. The guarded keys are not the locks' keys, and
// may be on any server. Any number of goroutines may use a Guard.
type Guard struct {
	rdb      redis.UniversalClient
	remember time.Duration
}

// NewGuard returns a guard that sends its commands through rdb. It does no I/O.
//
// remember is how long the guard remembers a key's fence after the last command on the key. It is
// at least a second. A write that comes later is not refused. So choose longer than a process
// could be paused and keep its connection; a day costs little. FLUSHALL, or an eviction policy
// that takes all keys, makes the server forget earlier, with the same effect.
//
// The error is fence.ErrInvalid for a shorter time, and for a client that [New] does not accept.
func NewGuard(rdb redis.UniversalClient, remember time.Duration) (*Guard, error) {
	if err := fits(rdb); err != nil {
		return nil, guardError(err.Error())
	}
	if remember < time.Second {
		return nil, guardError(fmt.Sprintf("redislock: NewGuard: remember for %s: less than a second", remember))
	}
	rdb, _ = punctual(rdb)
	return &Guard{rdb, remember}, nil
}

// Do runs one command whose first argument is the key. It returns it as rdb.Do does, except that
// maps, such as HGETALL's, come as lists:
//
//	err := guard.Do(ctx, fence, "HSET", "order:42", "paid", 1).Err()
//
// If a larger fence was seen for the key, the error is a *fence.StaleError, and the command did
// not run. An impossible fence or key is fence.ErrInvalid. Any other error is Redis's or the
// client's own. The command is sent once: after a network error, nobody knows whether it ran.
// While Cluster moves the key's slot, the command may wait for up to 2 s. After that, the error is
// TRYAGAIN, and the command did not run.
//
// Writes mostly depend on what was read. So read through the guard too, so that no older holder
// can write after your read: guard.Do(ctx, fence, "HGET", "order:42", "paid").
//
// Braces in a key must be those of a Cluster hash tag. If a command has more keys, only the first
// is guarded.
func (g *Guard) Do(ctx context.Context, f uint64, command, key string, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, command, key)
	tag, err := hashTag(key)
	if err == nil && command == "" {
		err = guardError("redislock: Guard: no command")
	}
	if err == nil {
		err = fence.Check(f)
	}
	if err != nil {
		cmd.SetErr(err)
		return cmd
	}
	line := append([]any{
		"evalsha", guardScript.sha, 2, key, "{" + tag + "}:v1:seen:" + key,
		strconv.FormatUint(f, 10), g.remember.Milliseconds(), command,
	}, args...)
	cmd = g.sendWhole(ctx, line)
	if says(cmd.Err(), "NOSCRIPT") {
		line[0], line[1] = "eval", guardScript.source
		cmd = g.sendWhole(ctx, line)
	}
	if seen, ok := staleSeen(cmd.Err()); ok {
		cmd.SetErr(&fence.StaleError{Key: key, Fence: f, Seen: seen})
	}
	return cmd
}

// sendWhole sends a command. While the key's slot is being moved, it waits until the key and its
// remembered fence are at the same node again.
func (g *Guard) sendWhole(ctx context.Context, line []any) *redis.Cmd {
	bounded, cancel := context.WithTimeout(ctx, guardMoves)
	defer cancel()
	cmd, _ := whileMoving(bounded, func() (*redis.Cmd, error) {
		cmd := g.send(ctx, line)
		err := cmd.Err()
		return cmd, err
	})
	return cmd // the error is in it
}

func (g *Guard) send(ctx context.Context, line []any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, line...)
	cmd.SetFirstKeyPos(3)
	_ = g.rdb.Process(ctx, once{cmd}) // the same error is in cmd
	return cmd
}

// staleSeen reads the script's refusal.
func staleSeen(err error) (seen uint64, ok bool) {
	if !says(err, "STALE") {
		return 0, false
	}
	_, digits, _ := strings.Cut(err.Error(), "STALE ")
	digits, _, _ = strings.Cut(digits, " ") // servers may add where it was raised
	seen, _ = strconv.ParseUint(digits, 10, 64)
	return seen, true
}

// hashTag returns the part of a key that Redis Cluster hashes. Another key that has exactly this
// part in braces is in the same slot.
func hashTag(key string) (string, error) {
	if key == "" {
		return "", guardError("redislock: Guard: empty key")
	}
	_, rest, open := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	switch {
	case open && closed && tag != "":
		return tag, nil
	case strings.ContainsAny(key, "{}"):
		return "", guardError(fmt.Sprintf("redislock: Guard: key %.40q: its braces are no hash tag", key))
	}
	return key, nil
}

// guardError is fence.ErrInvalid with a text of its own.
type guardError string

func (e guardError) Error() string        { return string(e) }
func (e guardError) Is(target error) bool { return target == fence.ErrInvalid }

// ErrorType returns "invalid".
func (e guardError) ErrorType() string { return "invalid" }
