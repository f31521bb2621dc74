package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// An error of the server's counts as "nothing was executed". So whichever command a user may not
// send, no script may do a part of its work and then fail with it: nobody is told that nothing was
// executed when a name was taken or freed, and nobody is granted a name, or refused it, who was not.
// And the error says which permission is missing.
func TestWhoLacksACommandIsNeverToldAnythingWrong(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	for _, lacks := range commands(minimalACL) {
		t.Run(lacks, func(t *testing.T) {
			t.Parallel()
			x := newLacker(t, server.Addr(), lacks)
			x.tryAll()
			x.onlyLacks()
		})
	}
}

// commands are those that a list of permissions has, but for what a connection and the call of a script need.
func commands(acl []any) (names []string) {
	for _, word := range acl {
		name, plus := strings.CutPrefix(fmt.Sprint(word), "+")
		if plus && !slices.Contains([]string{"hello", "ping", "eval", "evalsha", "subscribe", "unsubscribe"}, name) {
			names = append(names, name)
		}
	}
	return names
}

// lacker is a user who may do everything but, when it matters, send one command.
type lacker struct {
	*testing.T
	place
	store  *redislock.Store
	lacks  string
	what   string
	name   string // of the lock
	tokens int
}

func newLacker(t *testing.T, addr, lacks string) *lacker {
	t.Helper()
	x := &lacker{T: t, lacks: lacks, place: place{addr, "holdfast:" + lacks + ":", dial(t, &redis.Options{Addr: addr})}}
	x.do(t, append([]any{"acl", "setuser", lacks, "on", ">secret"}, minimalACL...)...)
	rdb := dial(t, &redis.Options{Addr: addr, Username: lacks, Password: "secret", Dialer: editing(func(b []byte) ([]byte, error) {
		time.Sleep(time.Millisecond) // commands gather, and so are merged
		return b, nil
	})})
	x.store = store(t, rdb, redislock.WithPrefix(x.prefix), redislock.WithoutServerCheck())
	return x
}

// tryAll tries everything that scripts do.
func (x *lacker) tryAll() {
	x.Helper()
	for i, d := range actions() {
		x.name = fmt.Sprint("name-", i)
		x.try(d)
	}
	x.many()
}

// try does one thing without the permission.
func (x *lacker) try(d action) {
	x.Helper()
	x.what = d.what
	c := d.begin(x)
	before, marked := x.owners(), x.marked()
	x.may("-")
	ctx, cancel := context.WithTimeout(x.Context(), time.Second)
	defer cancel()
	err := d.do(ctx, x, c)
	x.may("+")
	after := x.owners()
	x.named(err)
	m := driver.Explain(err)
	ours, was := slices.Contains(after, c.Token), slices.Contains(before, c.Token)
	said := ""
	switch {
	case err == nil && d.takes && !ours:
		said = "granted, or still ours"
	case err == nil && d.frees && ours:
		said = "freed"
	case err == nil && d.frees && c.Dedup > 0 && !x.marked(), m.Kind == driver.Unmarked && x.marked():
		said = "completed"
	case m.Kind == driver.Unmarked && ours:
		said = "freed without a marker"
	case m.Held != nil && (ours || len(before) == 0 && !d.queued):
		said = "held by somebody else"
	case m.Kind == driver.Marked && !marked:
		said = "done"
	case d.takes && len(before) == 1 && before[0] != c.Token && before[0] != "kept" && !slices.Equal(before, after):
		said = "nothing of another one's lock"
	case m.Kind == driver.NotOwner && was:
		said = "not ours"
	case m.Kind == driver.NotDone && (!slices.Equal(before, after) || marked != x.marked()):
		said = "nothing was executed"
	}
	if said != "" {
		x.Errorf("%s: told %q (%v); the owners were %q and are %q", x.what, said, err, before, after)
	}
}

// onlyLacks fails the test if the server has denied the user another command than the one: then the list in the docs is too short. If it
// has not denied the one, the list is too long.
func (x *lacker) onlyLacks() {
	x.Helper()
	denied := make(map[string]bool)
	for _, e := range x.direct.ACLLog(x.Context(), 1000).Val() {
		if e.Username == x.lacks {
			denied[strings.ToLower(e.Object)] = true
		}
	}
	if !maps.Equal(denied, map[string]bool{x.lacks: true}) {
		x.Errorf("who lacks %s was denied %v", x.lacks, slices.Sorted(maps.Keys(denied)))
	}
}

// named fails the test if err is no answer and does not name the command.
func (x *lacker) named(err error) {
	x.Helper()
	m := driver.Explain(err)
	if m.Answered() && m.Kind != driver.Unmarked || errors.Is(err, context.DeadlineExceeded) || m.Nobody {
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
	name := func(i int) driver.Claim { return claim(fmt.Sprint("many-", i), fmt.Sprint("mine-", i)) }
	for i := range n / 4 {
		grant(x.T, x.store, claim(name(4*i).Name, fmt.Sprint("other-", i)))
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
			m, ours := driver.Explain(err), slices.Contains(after, name(i).Token)
			if err == nil && ours != (what == "acquire") || m.Held != nil && (ours || len(before[i]) == 0) ||
				m.Kind == driver.NotDone && !slices.Equal(before[i], after) ||
				m.Kind == driver.NotOwner && slices.Contains(before[i], name(i).Token) {
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
	x.do(x.T, "acl", "setuser", x.lacks, sign+x.lacks)
}

// owners says who has the name, as the server has it.
func (x *lacker) owners() []string {
	x.Helper()
	value, err := x.direct.Get(x.Context(), x.key(x.name)).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case strings.HasPrefix(value, "=") || strings.HasPrefix(value, "!"):
		return []string{"kept"}
	case !strings.HasPrefix(value, "+") && !strings.HasPrefix(value, "*"):
		return []string{value[:22]}
	}
	living := redis.ZRangeArgs{Key: x.side(x.name, "holders"), Start: time.Now().UnixMilli(), Stop: "+inf", ByScore: true}
	members := x.direct.ZRangeArgs(x.Context(), living).Val()
	for i, member := range members {
		members[i] = member[1:23]
	}
	slices.Sort(members)
	return append([]string{"several"}, members...)
}

func (x *lacker) marked() bool {
	return x.direct.Exists(x.Context(), x.side(x.name, "done:pay")).Val() == 1
}

// claim makes one with a token of its own.
func (x *lacker) claim(opts ...func(*driver.Claim)) driver.Claim {
	x.tokens++
	return claim(x.name, fmt.Sprintf("token-%016d", x.tokens), append(opts, labelled)...)
}

// has grants a claim.
func (x *lacker) has(opts ...func(*driver.Claim)) driver.Claim {
	x.Helper()
	c := x.claim(opts...)
	grant(x.T, x.store, c)
	return c
}

// waits stands in line with a claim, behind whoever has the name.
func (x *lacker) waits(c driver.Claim) driver.Claim {
	x.Helper()
	look(x.T, x.store, c)
	return c
}

// queue has somebody of another process stand in line.
func (x *lacker) queue() {
	x.Helper()
	line, member := x.side(x.name, "line"), strings.Repeat("c", 22)+"place"
	ok(x.T, x.direct.ZAdd(x.Context(), line, redis.Z{Score: 1, Member: member}).Err())
	ok(x.T, x.direct.HSet(x.Context(), line+":beats", member, time.Now().Add(9*time.Second).UnixMilli()).Err())
}

// dies has somebody be among the holders whose TTL is over.
func (x *lacker) dies() {
	x.Helper()
	ok(x.T, x.direct.ZAdd(x.Context(), x.side(x.name, "holders"), redis.Z{Score: 1, Member: "=" + strings.Repeat("d", 22)}).Err())
}
