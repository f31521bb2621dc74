package redislock_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// The permissions that docs and README give for a Redis user of its own.
var minimalACL = []any{
	"resetkeys", "~holdfast:*", "~{holdfast:*", "resetchannels", "&{holdfast:*",
	"-@all", "+evalsha", "+eval", "+get", "+mget", "+set", "+del", "+pexpire", "+pttl", "+time", "+exists", "+zadd", "+zrange", "+zrem", "+zscore", "+zcount", "+zrangebyscore", "+zremrangebyrank", "+hset", "+hget", "+hdel",
	"+publish", "+subscribe", "+unsubscribe", "+hello", "+ping",
}

// The lines of the docs.
var (
	forClaims  = append([]any{"acl", "setuser", "locks", "on", ">secret"}, minimalACL...)
	withWait   = []any{"acl", "setuser", "locks", "+wait"}
	withSlots  = []any{"acl", "setuser", "locks", "+spublish", "+ssubscribe", "+sunsubscribe", "+cluster|slots", "+command", "+asking"}
	withLooks  = []any{"acl", "setuser", "locks", "+scan"}
	withInfo   = []any{"acl", "setuser", "locks", "+info"}
	forLooking = []any{
		"acl", "setuser", "looker", "on", ">secret", "resetkeys", "~holdfast:*", "~{holdfast:*", "resetchannels",
		"-@all", "+evalsha", "+eval", "+get", "+pttl", "+time", "+zrange", "+hget", "+scan", "+hello", "+ping",
	}
)

// allow has an administrator give permissions, all in one command: other cases use the account meanwhile.
func allow(t testing.TB, addr string, lines ...[]any) {
	t.Helper()
	all := lines[0]
	for _, line := range lines[1:] {
		all = slices.Concat(all, line[3:])
	}
	ok(t, dial(t, &redis.Options{Addr: addr}).Do(t.Context(), all...).Err())
}

// knowing are the arguments of a server that knows the user as it starts.
func knowing(lines ...[]any) []string {
	args := []string{"--user", "locks"}
	for _, line := range lines {
		for _, word := range line[3:] {
			args = append(args, fmt.Sprint(word))
		}
	}
	return args
}

func TestTheDocsGiveThePermissionsThatAreTested(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/backends/redis.md")
	ok(t, err)
	for _, words := range [][]any{forClaims, withWait, withSlots, withLooks, withInfo, forLooking} {
		line := strings.TrimSuffix(strings.ReplaceAll(fmt.Sprintln(words...), "acl setuser", "ACL SETUSER"), "\n")
		if !strings.Contains(string(docs), "\n"+line+"\n") {
			t.Errorf("docs/backends/redis.md does not say:\n%s", line)
		}
	}
}

// The suites run with these permissions.
func TestTheMinimalACLIsEnoughAndNoMore(t *testing.T) {
	t.Parallel()
	p, _ := own(t, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru")
	allow(t, p.addr, forClaims)
	rdb := dial(t, asLocks(p.addr, nil))
	locks := locker(t, rdb)
	ok(t, locks.Ready(t.Context())) // the server is checked only by who may send INFO
	handsOver(t, locks, locker(t, dial(t, asLocks(p.addr, nil))))
	for what, err := range map[string]error{
		"FLUSHALL":             rdb.FlushAll(t.Context()).Err(),
		"a foreign key":        rdb.Set(t.Context(), "other", "x", 0).Err(),
		"FLUSHALL by script":   rdb.Eval(t.Context(), "return redis.call('FLUSHALL')", nil).Err(),
		"foreign key, script":  rdb.Eval(t.Context(), "return redis.call('SET', 'other', 'x')", nil).Err(),
		"CONFIG":               rdb.ConfigGet(t.Context(), "*").Err(),
		"KEYS":                 rdb.Keys(t.Context(), "*").Err(),
		"another user's topic": rdb.Publish(t.Context(), "other", "x").Err(),
	} {
		if err == nil || !strings.Contains(err.Error(), "NOPERM") && !strings.Contains(err.Error(), "can't") && !strings.Contains(err.Error(), "ACL failure") {
			t.Errorf("%s: %v", what, err)
		}
	}
	allow(t, p.addr, withInfo)
	is(t, locker(t, dial(t, asLocks(p.addr, nil))).Ready(t.Context()), core.ErrUnavailable)
}

func TestWhoOnlyLooksSeesEverythingAndChangesNothing(t *testing.T) {
	t.Parallel()
	p, _ := own(t)
	allow(t, p.addr, forLooking)
	s := p.store(t)
	looker := store(t, dial(t, &redis.Options{Addr: p.addr, Username: "looker", Password: "secret"}))
	held := claim("held", "held", labelled)
	done := claim("done", "done", dedups)
	grant(t, s, held)
	grant(t, s, claim("read", "read", reader))
	grant(t, s, done)
	release(t, s, done)
	look(t, s, claim("held", "waits"))
	infos := list(t, looker, "")
	if x := infos["held"]; len(infos) != 2 || x.Label != "who" || len(x.Line) != 1 || len(infos["read"].Holders) != 1 || x.Handle != known(t, looker, "held").Handle {
		t.Errorf("%+v", infos)
	}
	markers := 0
	for _, err := range looker.Markers(t.Context(), "") {
		ok(t, err)
		markers++
	}
	if markers != 1 {
		t.Errorf("%d markers", markers)
	}
	_, taken := looker.Acquire(t.Context(), claim("free", "free"))
	for what, err := range map[string]error{
		"acquire": taken, "evict": looker.Evict(t.Context(), "held", infos["held"].Handle), "remove a marker": looker.Unmark(t.Context(), "done", "pay"),
	} {
		refused(t, err)
		if why := driver.Reason(err); !strings.Contains(why, "NOPERM") || !strings.Contains(why, "ACL SETUSER <user> +") {
			t.Errorf("%s: %v: %q", what, err, why)
		}
	}
	ok(t, renew(t, s, held))
	allow(t, p.addr, forClaims) // who may lock may evict, but not look at all
	locks := store(t, dial(t, asLocks(p.addr, nil)))
	for _, err := range locks.Leases(t.Context(), "") {
		refused(t, err)
	}
	ok(t, locks.Evict(t.Context(), "held", infos["held"].Handle))
}
