package redislock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func TestReadySaysWhatIsWrongWithTheServerOrTheClient(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		prepare []any
		client  func(o *redis.Options)
		says    string // beside the address
	}{
		"nothing":      {},
		"the password": {client: func(o *redis.Options) { o.Password = "wrong" }, prepare: []any{"config", "set", "requirepass", "x"}, says: "WRONGPASS: the server does not know this user and password"},
		"no password":  {prepare: []any{"config", "set", "requirepass", "x"}, says: "NOAUTH: the server wants a password"},
		"evalsha":      {prepare: []any{"acl", "setuser", "default", "-evalsha"}, says: "NOPERM: the user may not run evalsha"},
		"set":          {prepare: []any{"acl", "setuser", "default", "-set"}, says: "NOPERM: the user may not run set"},
		"del":          {prepare: []any{"acl", "setuser", "default", "-del"}, says: "NOPERM: the user may not run del"},
		"keys":         {prepare: []any{"acl", "setuser", "default", "resetkeys", "~x"}, says: "NOPERM: the user may not access the keys"},
		"a replica":    {prepare: []any{"replicaof", "127.0.0.1", "1"}, says: "READONLY: the server is a replica"},
		"memory":       {prepare: []any{"config", "set", "maxmemory", "1"}, says: "OOM: the server's memory is full"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.prepare != nil {
				w.do(t, c.prepare...)
			}
			o := &redis.Options{Addr: w.server.Addr()}
			if c.client != nil {
				c.client(o)
			}
			locks := locker(t, dial(t, o))
			err := locks.Ready(t.Context())
			if c.says == "" {
				ok(t, err)
				return
			}
			is(t, err, core.ErrUnavailable)
			for _, part := range []string{c.says, w.server.Addr()} {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%v: does not say %q", err, part)
				}
			}
		})
	}
}

func TestReadyNamesWhatAServerSaysThatWeHaveNot(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]string{
		"CROSSSLOT Keys in request don't hash to the same slot":                                          "the keys of one name are in several slots",
		"MOVED 3999 127.0.0.1:6381":                                                                      "use redis.NewClusterClient",
		"ERR unknown command 'evalsha', with args beginning with: ":                                      "redislock.NewTx",
		"ERR ACL failure in script: User locks has no permissions to run the 'zadd' command script: 4e6": "the user may not run zadd",
		"ERR ACL failure in script: No permissions to access a key script: 4e6":                          "the user may not access the keys",
		"MISCONF Redis is configured to save RDB snapshots":                                              "its disk",
		"NOREPLICAS Not enough good replicas to write.":                                                  "too few replicas",
		"LOADING Redis is loading the dataset in memory":                                                 "is starting",
		"BUSY Redis is busy running a script.":                                                           "SCRIPT KILL",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-d":                                  "without its master",
		"CLUSTERDOWN The cluster is down":                                                                "CLUSTER INFO",
		"TRYAGAIN Multiple keys request during rehashing of slot":                                        "is moving",
		"ERR max number of clients reached":                                                              "maxclients",
		"WRONGTYPE Operation against a key holding the wrong kind":                                       "the same prefix",
	} {
		t.Run(strings.Fields(says)[0], func(t *testing.T) {
			t.Parallel()
			rdb := redis.NewClient(&redis.Options{
				Addr: refuser(t, says), Protocol: 2, MaxRetryBackoff: 10 * time.Millisecond, // it repeats what it is told to try again
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			t.Cleanup(func() { _ = rdb.Close() })
			err := locker(t, rdb).Ready(t.Context())
			is(t, err, core.ErrUnavailable)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: does not say %q", err, want)
			}
		})
	}
}

func TestAWrongPasswordIsToldAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(t, "config", "set", "requirepass", "x")
	locks, err := core.New(redislock.New(dial(t, &redis.Options{Addr: w.server.Addr(), Password: "y"})), core.WithTTL(time.Minute))
	ok(t, err)
	began := time.Now()
	_, err = locks.Acquire(t.Context(), "name")
	is(t, err, core.ErrUnavailable)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("after %s of attempts", took)
	}
}
