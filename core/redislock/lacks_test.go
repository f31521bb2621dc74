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
// And the error says which permission is missing. All that scripts do is done, wherever a name may stand.
func TestWhoLacksACommandIsNeverToldAnythingWrong(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	for _, lacks := range commands(minimalACL) {
		t.Run(lacks, func(t *testing.T) {
			t.Parallel()
			x := newLacker(t, server.Addr(), lacks)
			for which, of := range kinds {
				for where, begin := range scenes {
					for what, d := range actions {
						x.tokens++
						x.name = fmt.Sprint("name-", x.tokens)
						x.tries(fmt.Sprintf("%s: %s: %s", which, where, what), d, with(begin(x, of), d.opts...))
					}
				}
			}
			x.many()
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

// action is what a lacker does with a claim.
type action struct {
	does         func(*lacker, context.Context, driver.Claim) error
	takes, frees bool // what no error means
	opts         []kind
}

// actions are what scripts do.
var actions = map[string]action{
	"acquire":             {does: (*lacker).acquires, takes: true},
	"acquire with dedup":  {does: (*lacker).acquires, takes: true, opts: []kind{dedups}},
	"acquire by hand-off": {does: (*lacker).acquires, takes: true, opts: []kind{handedOff}},
	"reserve fences":      {does: (*lacker).acquires, takes: true, opts: []kind{func(c *driver.Claim) { c.Fences = 4 }}},
	"wait":                {does: (*lacker).awaits, takes: true},
	"renew":               {does: (*lacker).renews, takes: true},
	"check":               {does: (*lacker).renews, takes: true, opts: []kind{unrenewed}},
	"release":             {does: (*lacker).releases, frees: true},
	"complete":            {does: (*lacker).releases, frees: true, opts: []kind{dedups}},
	"keep":                {does: (*lacker).releases, frees: true, opts: []kind{kept}},
	"keep and complete":   {does: (*lacker).releases, frees: true, opts: []kind{kept, dedups}},
	"hand off":            {does: (*lacker).releases, frees: true, opts: []kind{kept, handedOff}},
	"evict":               {does: (*lacker).evicts, frees: true},
	"inspect":             {does: (*lacker).inspects},
}

// lacker is a user who may do everything but, when it matters, send one command.
type lacker struct {
	*testing.T
	place
	store  *redislock.Store
	lacks  string
	name   string // of the lock
	tokens int
}

func (x *lacker) acquires(ctx context.Context, c driver.Claim) error {
	g, err := x.store.Acquire(ctx, c)
	if err == nil && c.Exclusive() && g.Fence < 1e15 {
		x.Errorf("fence %d: not of the server's clock", g.Fence)
	}
	return err
}

func (x *lacker) awaits(ctx context.Context, c driver.Claim) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	_, err := x.store.Wait(ctx, c)
	return err
}

func (x *lacker) renews(ctx context.Context, c driver.Claim) error {
	return errors.Join(x.store.Renew(ctx, []driver.Claim{c})...)
}

func (x *lacker) releases(ctx context.Context, c driver.Claim) error { return x.store.Release(ctx, c) }

func (x *lacker) evicts(ctx context.Context, c driver.Claim) error {
	return x.store.Evict(ctx, c.Name, handle(c.Token))
}

func (x *lacker) inspects(ctx context.Context, c driver.Claim) error {
	info, err := x.store.Inspect(ctx, c.Name)
	if there := len(x.at(c.Name).owners) > 0; err == nil && info.Held != there {
		x.Errorf("held: %t, and it is shown %+v", there, info)
	}
	return err
}

type kind = func(*driver.Claim)

// scenes are where a name may stand, for a claim of some kind.
var scenes = map[string]func(x *lacker, of kind) driver.Claim{
	"free":                  func(x *lacker, of kind) driver.Claim { return x.claim(of) },
	"ours":                  func(x *lacker, of kind) driver.Claim { return x.has(of) },
	"another's":             func(x *lacker, of kind) driver.Claim { x.has(alone); return x.claim(of) },
	"one of its kind's":     func(x *lacker, of kind) driver.Claim { x.has(of); return x.claim(of) },
	"two holders'":          func(x *lacker, of kind) driver.Claim { x.has(permit); x.has(permit); return x.claim(of) },
	"a dead reader's, too":  func(x *lacker, of kind) driver.Claim { x.has(reader); x.dies(); return x.claim(of) },
	"ours, beside a reader": func(x *lacker, _ kind) driver.Claim { x.has(reader); return x.has(reader) },
	"ours, beside a permit": func(x *lacker, _ kind) driver.Claim { x.has(permit); return x.has(permit) },
	"done": func(x *lacker, of kind) driver.Claim {
		release(x.T, x.store, with(x.has(of), dedups))
		return x.claim(of)
	},
	"left for a hand-off": func(x *lacker, of kind) driver.Claim {
		release(x.T, x.store, with(x.has(alone), kept, handedOff))
		return x.claim(of)
	},
	"free, and waited for": func(x *lacker, of kind) driver.Claim { x.queue(); return x.claim(of) },
	"ours, and waited for": func(x *lacker, of kind) driver.Claim { c := x.has(of); x.queue(); return c },
	"another's, ours next": func(x *lacker, of kind) driver.Claim { x.has(alone); return x.waits(x.claim(of)) },
	"free, ours next": func(x *lacker, of kind) driver.Claim {
		owner := x.has(alone)
		c := x.waits(x.claim(of))
		release(x.T, x.store, owner)
		return c
	},
}

func newLacker(t *testing.T, addr, lacks string) *lacker {
	t.Helper()
	x := &lacker{T: t, lacks: lacks, place: place{addr, "holdfast:" + lacks + ":", dial(t, &redis.Options{Addr: addr})}}
	x.do(t, append([]any{"acl", "setuser", lacks, "on", ">secret"}, minimalACL...)...)
	rdb := dial(t, &redis.Options{Addr: addr, Username: lacks, Password: "secret", Dialer: gathering})
	x.store = store(t, rdb, redislock.WithPrefix(x.prefix), redislock.WithoutServerCheck())
	return x
}

// gathering has writes take a while, so that commands gather, and are merged.
var gathering = editing(func(b []byte) ([]byte, error) { time.Sleep(time.Millisecond); return b, nil })

// tries does the same with some claims at once, without the permission.
func (x *lacker) tries(what string, d action, claims ...driver.Claim) {
	x.Helper()
	before, errs := make([]standing, len(claims)), make([]error, len(claims))
	for i, c := range claims {
		before[i] = x.at(c.Name)
	}
	x.do(x.T, "acl", "setuser", x.lacks, "-"+x.lacks)
	crowd(len(claims), func(i int) {
		ctx, cancel := context.WithTimeout(x.Context(), time.Second)
		defer cancel()
		errs[i] = d.does(x, ctx, claims[i])
	})
	x.do(x.T, "acl", "setuser", x.lacks, "+"+x.lacks)
	for i, c := range claims {
		after, m := x.at(c.Name), driver.Explain(errs[i])
		if said := d.wrong(c, before[i], after, errs[i]); said != "" {
			x.Errorf("%s: told %q (%v): %+v, and then %+v", what, said, errs[i], before[i], after)
		}
		answered := m.Answered() && m.Kind != driver.Unmarked || errors.Is(errs[i], context.DeadlineExceeded) || m.Nobody
		if !answered && !strings.Contains(strings.ToLower(errs[i].Error()), x.lacks) {
			x.Errorf("%s: the error does not name %s: %v", what, x.lacks, errs[i])
		}
	}
}

// wrong is what err says and is not so, if anything.
func (d action) wrong(c driver.Claim, before, after standing, err error) string {
	m := driver.Explain(err)
	ours, was := slices.Contains(after.owners, c.Token), slices.Contains(before.owners, c.Token)
	same := slices.Equal(before.owners, after.owners)
	switch {
	case err == nil && d.takes && !ours:
		return "granted, or still ours"
	case err == nil && d.frees && ours:
		return "freed"
	case err == nil && d.frees && c.Dedup > 0 && !after.marked, m.Kind == driver.Unmarked && after.marked:
		return "completed"
	case m.Kind == driver.Unmarked && ours:
		return "freed without a marker"
	case m.Held != nil && (ours || len(before.owners) == 0 && !before.queued):
		return "held by somebody else"
	case m.Kind == driver.Marked && !before.marked:
		return "done"
	case d.takes && len(before.owners) == 1 && !was && before.owners[0] != keptName && !same:
		return "nothing of another one's lock"
	case m.Kind == driver.NotOwner && was:
		return "not ours"
	case m.Kind == driver.NotDone && (!same || before.marked != after.marked):
		return "nothing was executed"
	default:
		return ""
	}
}

// many have commands that are merged: each has an answer of its own.
func (x *lacker) many() {
	x.Helper()
	claims := make([]driver.Claim, 64)
	for i := range claims {
		claims[i] = claim(fmt.Sprint("many-", i), fmt.Sprint("mine-", i))
		if i%4 == 0 {
			grant(x.T, x.store, claim(claims[i].Name, fmt.Sprint("other-", i)))
		}
	}
	for _, what := range []string{"acquire", "release"} {
		x.tries("many "+what, actions[what], claims...)
		crowd(len(claims), func(i int) { _, _ = x.store.Acquire(x.Context(), claims[i]) })
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

// standing is how the server has a name: whose it is, whether there is a marker, and a queue.
type standing struct {
	owners         []string
	marked, queued bool
}

// keptName is in the place of an owner who has left the name taken.
const keptName = "kept"

func (x *lacker) at(name string) (s standing) {
	x.Helper()
	s.marked = x.direct.Exists(x.Context(), x.side(name, "done:pay")).Val() == 1
	s.queued = x.direct.Exists(x.Context(), x.side(name, "line")).Val() == 1
	value, err := x.direct.Get(x.Context(), x.key(name)).Result()
	switch {
	case errors.Is(err, redis.Nil):
	case strings.HasPrefix(value, "=") || strings.HasPrefix(value, "!"):
		s.owners = []string{keptName}
	case !strings.HasPrefix(value, "+") && !strings.HasPrefix(value, "*"):
		s.owners = []string{value[:22]}
	default:
		living := redis.ZRangeArgs{Key: x.side(name, "holders"), Start: time.Now().UnixMilli(), Stop: "+inf", ByScore: true}
		members := x.direct.ZRangeArgs(x.Context(), living).Val()
		for i, member := range members {
			members[i] = member[1:23]
		}
		slices.Sort(members)
		s.owners = append([]string{"several"}, members...)
	}
	return s
}

// claim makes one with a token of its own.
func (x *lacker) claim(opts ...kind) driver.Claim {
	x.tokens++
	return claim(x.name, fmt.Sprintf("token-%016d", x.tokens), append(opts, labelled)...)
}

// has grants a claim.
func (x *lacker) has(opts ...kind) driver.Claim {
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
