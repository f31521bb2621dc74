package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// calledByScripts are the commands that scripts call.
var calledByScripts = []string{
	"get", "mget", "set", "del", "exists", "pttl", "pexpire", "time", "publish",
	"zadd", "zrange", "zrem", "zscore", "zcount", "zrangebyscore", "zremrangebyrank", "hset", "hget", "hdel",
}

// An error of the server's counts as "nothing was executed". So whichever command a user may not
// send, no script may do a part of its work and then fail with it: nobody is told that nothing was
// executed when a name was taken or freed, and nobody is granted a name, or refused it, who was not.
// And the error says which permission is missing.
func TestWhoLacksACommandIsNeverToldAnythingWrong(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	for _, lacks := range calledByScripts {
		t.Run(lacks, func(t *testing.T) {
			t.Parallel()
			x, rdb := newLacker(t, server.Addr(), lacks, minimalACL)
			x.store = redislock.New(rdb, redislock.WithPrefix(x.prefix))
			t.Cleanup(func() { ok(t, x.store.Close(context.WithoutCancel(t.Context()))) })
			x.driver = x.store
			for i, d := range deeds() {
				x.what, x.name = d.what, fmt.Sprint("name-", i)
				x.try(d)
			}
			x.many()
		})
	}
}

// A transaction is refused as a whole, but for a user who may not send MULTI: then what follows it
// is executed one by one.
func TestWithoutScriptsWhoLacksACommandIsNeverToldAnythingWrong(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	for _, lacks := range []string{"watch", "multi", "exec", "get", "set", "del", "pexpire", "pttl", "time"} {
		t.Run(lacks, func(t *testing.T) {
			t.Parallel()
			x, rdb := newLacker(t, server.Addr(), lacks, noScripts[5:])
			x.driver = redislock.NewTx(rdb, redislock.WithPrefix(x.prefix))
			for i, d := range txDeeds() {
				x.what, x.name = d.what, fmt.Sprint("name-", i)
				x.try(d)
			}
		})
	}
}

// lacker is a user who may do everything but, when it matters, send one command.
type lacker struct {
	*testing.T
	admin  *redis.Client
	driver driver.Driver
	store  *redislock.Store // the same, with scripts
	prefix string
	lacks  string
	what   string
	name   string // of the lock
	tokens int
}

func newLacker(t *testing.T, addr, lacks string, acl []any) (*lacker, *redis.Client) {
	t.Helper()
	x := &lacker{T: t, admin: dial(t, &redis.Options{Addr: addr}), prefix: "holdfast:" + lacks + ":", lacks: lacks}
	ok(t, x.admin.Do(t.Context(), append([]any{"acl", "setuser", lacks, "on", ">secret"}, acl...)...).Err())
	rdb := dial(t, &redis.Options{
		Addr: addr, Username: lacks, Password: "secret",
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return hesitant{conn}, err
		},
	})
	return x, rdb
}

// hesitant is a connection on which commands gather, and so are merged.
type hesitant struct{ net.Conn }

func (c hesitant) Write(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return c.Conn.Write(p)
}

// try does one thing without the permission.
func (x *lacker) try(d deed) {
	x.Helper()
	c := d.begin(x)
	before, marked := x.owners(), x.marked()
	x.may("-")
	ctx, cancel := context.WithTimeout(x.Context(), time.Second)
	defer cancel()
	err := d.do(ctx, x, c)
	x.may("+")
	after := x.owners()
	x.named(err)
	_, held := errors.AsType[*driver.Held](err)
	_, done := errors.AsType[*driver.Duplicate](err)
	said := ""
	switch {
	case err == nil && d.takes && !slices.Contains(after, c.Token):
		said = "granted, or still ours"
	case err == nil && d.frees && slices.Contains(after, c.Token):
		said = "freed"
	case err == nil && d.frees && c.Dedup > 0 && !x.marked(), errors.Is(err, driver.ErrUnmarked) && x.marked():
		said = "completed"
	case errors.Is(err, driver.ErrUnmarked) && slices.Contains(after, c.Token):
		said = "freed without a marker"
	case held && (slices.Contains(after, c.Token) || len(before) == 0 && !d.queued):
		said = "held by somebody else"
	case done && !marked:
		said = "done"
	case d.takes && len(before) == 1 && before[0] != c.Token && before[0] != "kept" && !slices.Equal(before, after):
		said = "nothing of another one's lock"
	case errors.Is(err, driver.ErrNotOwner) && slices.Contains(before, c.Token):
		said = "not ours"
	case errors.Is(err, driver.ErrNotSent) && (!slices.Equal(before, after) || marked != x.marked()):
		said = "nothing was executed"
	}
	if said != "" {
		x.Errorf("%s: told %q (%v); the owners were %q and are %q", x.what, said, err, before, after)
	}
}

// named fails the test if err is no answer and does not name the command.
func (x *lacker) named(err error) {
	x.Helper()
	_, held := errors.AsType[*driver.Held](err)
	_, done := errors.AsType[*driver.Duplicate](err)
	if err == nil || held || done || errors.Is(err, driver.ErrNotOwner) || errors.Is(err, context.DeadlineExceeded) || driver.Explain(err).Nobody {
		return
	}
	if !strings.Contains(strings.ToLower(err.Error()), x.lacks) {
		x.Errorf("%s: the error does not name %s: %v", x.what, x.lacks, err)
	}
}

// many are claims, and then releases, that travel together: each has an answer of its own.
func (x *lacker) many() {
	x.Helper()
	const n = 64
	name := func(i int) driver.Claim {
		c := claimOf(i)
		c.Name = "many-" + c.Name
		return c
	}
	for i := range n / 4 {
		c := name(4 * i)
		c.Token = fmt.Sprintf("other-%016d", i)
		_, err := x.store.Acquire(x.Context(), c)
		ok(x.T, err)
	}
	judge := func(what string, send func(c driver.Claim) error) {
		x.Helper()
		errs := make([]error, n)
		before := make([][]string, n)
		for i := range n {
			x.name = name(i).Name
			before[i] = x.owners()
		}
		x.may("-")
		crowd(n, func(i int) { errs[i] = send(name(i)) })
		x.may("+")
		for i, err := range errs {
			x.what, x.name = fmt.Sprintf("%s %d", what, i), name(i).Name
			x.named(err)
			after := x.owners()
			_, held := errors.AsType[*driver.Held](err)
			ours := slices.Contains(after, name(i).Token)
			if err == nil && ours != (what == "acquire") || held && ours || held && len(before[i]) == 0 ||
				errors.Is(err, driver.ErrNotSent) && !slices.Equal(before[i], after) ||
				errors.Is(err, driver.ErrNotOwner) && slices.Contains(before[i], name(i).Token) {
				x.Errorf("%s: %v; the owners were %q and are %q", x.what, err, before[i], after)
			}
		}
	}
	judge("acquire", func(c driver.Claim) error { _, err := x.store.Acquire(x.Context(), c); return err })
	crowd(n, func(i int) { _, _ = x.store.Acquire(x.Context(), name(i)) })
	judge("release", func(c driver.Claim) error { return x.store.Release(x.Context(), c) })
}

// may gives the permission, or takes it.
func (x *lacker) may(sign string) {
	x.Helper()
	ok(x.T, x.admin.Do(x.Context(), "acl", "setuser", x.lacks, sign+x.lacks).Err())
}

// owners says who has the name, as the server has it.
func (x *lacker) owners() []string {
	x.Helper()
	value, err := x.admin.Get(x.Context(), x.prefix+x.name).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case strings.HasPrefix(value, "=") || strings.HasPrefix(value, "!"):
		return []string{"kept"}
	case !strings.HasPrefix(value, "+") && !strings.HasPrefix(value, "*"):
		return []string{value[:22]}
	}
	members := x.admin.ZRange(x.Context(), "{"+x.prefix+x.name+"}:v1:holders", 0, -1).Val()
	for i, member := range members {
		members[i] = member[1:23]
	}
	slices.Sort(members)
	return append([]string{"several"}, members...)
}

func (x *lacker) marked() bool {
	return x.admin.Exists(x.Context(), "{"+x.prefix+x.name+"}:v1:done:pay").Val() == 1
}

// claim makes one with a token of its own.
func (x *lacker) claim(opts ...func(*driver.Claim)) driver.Claim {
	x.tokens++
	c := driver.Claim{Name: x.name, Token: fmt.Sprintf("token-%016d", x.tokens), TTL: time.Minute, Label: "who", Scope: "pay"}
	for _, set := range opts {
		set(&c)
	}
	return c
}

// has grants a claim.
func (x *lacker) has(opts ...func(*driver.Claim)) driver.Claim {
	x.Helper()
	c := x.claim(opts...)
	_, err := x.driver.Acquire(x.Context(), c)
	ok(x.T, err)
	return c
}

// waits stands in line with a claim, behind whoever has the name.
func (x *lacker) waits(c driver.Claim) driver.Claim {
	x.Helper()
	ctx, cancel := context.WithTimeout(x.Context(), 150*time.Millisecond) // enough to line up on a busy machine
	defer cancel()
	_, err := x.store.Wait(ctx, c)
	_ = another(x.T, err)
	return c
}

// queue has somebody of another process stand in line.
func (x *lacker) queue() {
	x.Helper()
	line, member := "{"+x.prefix+x.name+"}:v1:line", strings.Repeat("c", 22)+"place"
	ok(x.T, x.admin.ZAdd(x.Context(), line, redis.Z{Score: 1, Member: member}).Err())
	ok(x.T, x.admin.HSet(x.Context(), line+":beats", member, time.Now().Add(9*time.Second).UnixMilli()).Err())
}
