package redislock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// Whoever waits for a name is told at once, and what helps, if to ask again is in vain.
func TestWhatAServerDoesNotHaveIsToldAtOnce(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]string{
		"ERR unknown command 'evalsha', with args beginning with: '4e6'":               "redislock.NewTx",
		"ERR unknown command `EVALSHA`, with args beginning with: `4e6`, ":             "redislock.NewTx",
		"ERR Could not find scripting engine 'lua'":                                    "redislock.NewTx",
		"ERR This instance has Lua scripting support disabled":                         "redislock.NewTx",
		"ERR Command is not available: 'EVALSHA'. See the documentation":               "redislock.NewTx",
		"unsupported command 'evalsha'":                                                "redislock.NewTx",
		"NOSCRIPT No matching script. Please use EVAL.":                                "redislock.NewTx",
		"CROSSSLOT Keys in request don't hash to the same slot":                        "several slots",
		"MOVED 3999 127.0.0.1:6381":                                                    "redis.NewClusterClient",
		"ERR This Redis command is not allowed from script script: 4e6, on user":       "redislock.NewTx",
		"ERR This Valkey command is not allowed from script script: 4e6, on user":      "redislock.NewTx",
		"ERR Unknown Redis command called from script script: 4e6, on @user_script:7.": "redislock.NewTx",
		"ERR Unknown command called from script script: 4e6, on @user_script:7.":       "redislock.NewTx",
	} {
		t.Run(strings.Fields(says)[0], func(t *testing.T) {
			t.Parallel()
			locks, err := locker(t, dial(t, &redis.Options{Addr: refuser(t, says), Protocol: 2})).With(core.WithTTL(time.Hour))
			ok(t, err)
			_, err = locks.Acquire(t.Context(), "name") // with a TTL of an hour, it would go on for as long
			is(t, err, core.ErrUnavailable)
			if err == nil || !strings.Contains(driver.Reason(err), want) || !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%v: %q does not say %q", err, driver.Reason(err), want)
			}
		})
	}
}

func TestAMissingReplicaIsToldThoughTheNextAnswerIsCutOff(t *testing.T) {
	t.Parallel()
	rdb := dial(t, &redis.Options{Addr: servers.Redis(t).Addr()})
	locks, err := locker(t, rdb, redislock.WithReplicas(1, 150*time.Millisecond)).With(core.WithTTL(3 * time.Second))
	ok(t, err)
	for _, acquire := range []func() (*core.Lease, error){
		func() (*core.Lease, error) { return locks.TryAcquire(t.Context(), "name") },
		func() (*core.Lease, error) { return locks.Acquire(t.Context(), "name") },
	} {
		_, err := acquire()
		is(t, err, core.ErrUnavailable)
		if err == nil || !strings.Contains(err.Error(), "0 of 1 replicas") {
			t.Errorf("%v", err)
		}
	}
}
