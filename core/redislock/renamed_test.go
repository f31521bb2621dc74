package redislock_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// without starts a server on which an administrator has taken commands away, as rename-command does.
func without(t *testing.T, commands ...string) *servers.Server {
	t.Helper()
	var args []string
	for _, c := range commands {
		args = append(args, "--rename-command", c, "")
	}
	return servers.Redis(t, args...)
}

func TestLocksWorkWithoutTheCommandsThatAdministratorsTakeAway(t *testing.T) {
	t.Parallel()
	for what, commands := range map[string][]string{
		"those of administrators": {
			"FLUSHALL", "FLUSHDB", "CONFIG", "KEYS", "SHUTDOWN", "DEBUG", "MONITOR", "SAVE", "BGSAVE", "BGREWRITEAOF",
			"REPLICAOF", "SLAVEOF", "ACL", "SCRIPT", "CLIENT", "INFO", "COMMAND", "SCAN", "RENAME",
		},
		"those of notifications": {"PUBLISH", "SUBSCRIBE"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			addr := without(t, commands...).Addr()
			locks := clusterLocker(t, dial(t, &redis.Options{Addr: addr}))
			ok(t, locks.Ready(t.Context()))
			handsOver(t, locks, clusterLocker(t, dial(t, &redis.Options{Addr: addr})))
		})
	}
}

func TestACommandThatIsRenamedIsNamedByTheError(t *testing.T) {
	t.Parallel()
	const (
		forbids = "the server forbids or does not know a command that locking needs; without scripts, use redislock.NewTx"
		script  = "a script calls a command that the server forbids or does not know; without scripts, use redislock.NewTx"
	)
	for command, want := range map[string]string{"EVALSHA": forbids, "EVAL": forbids, "SET": script, "GET": script, "TIME": script} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			told(t, locker(t, dial(t, &redis.Options{Addr: without(t, command).Addr()})), want)
		})
	}
	for _, command := range []string{"WATCH", "MULTI", "EXEC", "GET", "SET", "TIME"} {
		t.Run("NewTx without "+command, func(t *testing.T) {
			t.Parallel()
			locks, err := core.New(redislock.NewTx(dial(t, &redis.Options{Addr: without(t, command).Addr()})), core.WithTTL(ttl))
			ok(t, err)
			t.Cleanup(func() { _ = locks.Close(context.WithoutCancel(t.Context())) })
			if said := told(t, locks, "the server forbids or does not know "); strings.Contains(said, "without scripts") {
				t.Errorf("%s: it has none", said)
			}
		})
	}
}
