package redislock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
)

// keepBusy has several goroutines of the process that has x take the name again and again, until
// the test ends.
func keepBusy(t *testing.T, locks *core.Locker, x *core.Lease) {
	t.Helper()
	for range 4 {
		disturb(t, 0, func(ctx context.Context) {
			_ = locks.Do(ctx, "name", func(context.Context) error { // until the test ends
				time.Sleep(time.Millisecond)
				return nil
			})
		})
	}
	time.Sleep(ttl / 20) // they wait for x
	ok(t, x.Release(t.Context()))
}

// served, on any goroutine, fails the test unless the name is granted beside a busy process. How soon depends on
// the machine; who is not served in its turn waits for ever.
func served(t *testing.T, locks *core.Locker, opts ...core.Option) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*ttl)
	defer cancel()
	if err := locks.Do(ctx, "name", func(context.Context) error { return nil }, opts...); err != nil {
		t.Errorf("beside a busy process: %v", err)
	}
}

// A node of a quorum may get a look late, after the grant that it asked for. An entry would then be in the way of others once the
// name is free.
func TestALateLookByTheOwnerQueuesNothing(t *testing.T) {
	t.Parallel()
	p := part(t)
	s, c := p.store(t), ranked.Claim{Claim: claim("name", "owner"), Rank: ranked.Step}
	_, err := s.AcquireRanked(t.Context(), c)
	ok(t, err)
	ok(t, s.WaitRanked(t.Context(), c))
	if n := p.inLine(t); n != 0 {
		t.Errorf("%d entries", n)
	}
}

// The line's key goes, by eviction or an operator, while the beats stay; or the other way round, and then the order is
// not lost with the beats.
func TestWhoseLineIsGoneStandsInLineAgain(t *testing.T) {
	t.Parallel()
	for kind, of := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := part(t)
			held, wanted, second := claim("name", "holder"), claim("name", "waiter", of), claim("name", "second")
			holder, waiter := p.store(t), p.store(t)
			grant(t, holder, held)
			look(t, waiter, wanted)
			p.do(t, "del", p.side("name", "line"))
			look(t, waiter, wanted)
			look(t, waiter, second)
			p.do(t, "del", p.side("name", "line:beats"))
			look(t, waiter, second)
			look(t, waiter, wanted)
			if line := p.direct.ZRange(t.Context(), p.side("name", "line"), 0, -1).Val(); len(line) != 2 || !strings.HasSuffix(line[0], wanted.Token) {
				t.Errorf("the first is not the first any more, of %d", len(line))
			}
			release(t, holder, held)
			_, err := waiter.Wait(t.Context(), wanted)
			ok(t, err)
		})
	}
}

// An operator has taken the TTL away. That says nothing about when the name comes free, so it is
// looked at as often as one that a foreign client holds, and not all the time.
func TestANameWithoutATTLIsLookedAtAsAForeignOne(t *testing.T) {
	t.Parallel()
	for kind, opt := range map[string]core.Option{"exclusive": core.WithLimit(1), "shared": core.WithShared(), "limited": core.WithLimit(2)} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			grant(t, w.store(t), claim("name", "holder"))
			w.do(t, "persist", w.key("name"))
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() {
				_, err := w.locks.Acquire(ctx, "name", opt)
				over <- err
			}()
			w.lineUp(t, 1)
			w.do(t, "config", "resetstat")
			began := time.Now()
			var n int
			eventually(t, "it looks again", func() bool { n = w.scriptCalls(t); return n >= 5 })
			if took := time.Since(began); took < 200*time.Millisecond { // 25 ms apart, and further each time
				t.Errorf("looked at %d times in %s", n, took)
			}
			cancel()
			is(t, <-over, core.ErrHeld)
		})
	}
}

// scriptCalls is how many calls of scripts the server has counted.
func (p place) scriptCalls(t *testing.T) int { return p.calls(t, "eval") + p.calls(t, "evalsha") }

// calls is how often a command ran since the statistics were reset.
func (p place) calls(t *testing.T, command string) (n int) {
	t.Helper()
	if _, at, found := strings.Cut(p.direct.Info(t.Context(), "commandstats").Val(), "cmdstat_"+command+":calls="); found {
		_, err := fmt.Sscanf(at, "%d", &n)
		ok(t, err)
	}
	return n
}

// dropsPerCall is how many dead places one call of a script may drop: see line.lua.
const dropsPerCall = 100

// dead puts places in front of a queue, whose processes have died.
func (p place) dead(t *testing.T, n int) {
	t.Helper()
	places := make([]redis.Z, 1000)
	for done := 0; done < n; done += len(places) {
		for i := range places {
			places[i] = redis.Z{Score: float64(done + i), Member: fmt.Sprintf("%022d%022d", done+i, done+i)}
		}
		ok(t, p.direct.ZAdd(t.Context(), p.side("name", "line"), places...).Err())
	}
	p.do(t, "expire", p.side("name", "line"), 60)
}

// A rack of machines dies, and all of them were waiting for one name. Dropping all their places in one
// call blocks the server for everybody.
func TestNoCallDropsMoreThanAFewDeadPlaces(t *testing.T) {
	t.Parallel()
	asks := func(opts ...func(*driver.Claim)) func(t *testing.T, p place, s driver.Driver, held driver.Claim) {
		return func(t *testing.T, p place, s driver.Driver, _ driver.Claim) {
			t.Helper()
			p.do(t, "del", p.key("name"))
			if grant(t, s, claim("name", "c", opts...)); p.inLine(t) > 0 {
				t.Errorf("granted before %d others were looked at", p.inLine(t))
			}
		}
	}
	for what, act := range map[string]func(t *testing.T, p place, s driver.Driver, held driver.Claim){
		"a claim": asks(), "a reader": asks(reader),
		"a waiter": func(t *testing.T, p place, s driver.Driver, _ driver.Claim) {
			t.Helper()
			p.do(t, "del", p.key("name"))
			_, err := s.Wait(t.Context(), claim("name", "w"))
			ok(t, err)
		},
		"a release": func(t *testing.T, _ place, s driver.Driver, held driver.Claim) { t.Helper(); release(t, s, held) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p, _ := own(t)
			s, held := p.store(t), claim("name", "h")
			grant(t, s, held)
			p.dead(t, 20_000)
			p.do(t, "config", "resetstat")
			act(t, p, s, held)
			if dropped, scripts := p.calls(t, "zrem"), p.scriptCalls(t); dropped == 0 || dropped > (dropsPerCall+1)*scripts { // a claim also leaves its own place
				t.Errorf("%d dropped by %d calls", dropped, scripts)
			}
		})
	}
}

// While it is not known who comes first, a free name is given to nobody: neither to those who ask, nor to those
// who came last.
func TestThePlacesBehindManyDeadOnesAreServedInTheirOrder(t *testing.T) {
	t.Parallel()
	p := part(t)
	holder, held := p.store(t), claim("name", "h")
	grant(t, holder, held)
	p.dead(t, 20*dropsPerCall)
	order := make(chan int, 3)
	for i := range 3 {
		locks := p.locker(t)
		go func() {
			_ = locks.Do(context.WithoutCancel(t.Context()), "name", func(context.Context) error { order <- i; return nil }) // it lasts
		}()
		p.lineUp(t, int64(20*dropsPerCall+i+1))
	}
	release(t, holder, held)
	for want := range 3 {
		select {
		case got := <-order:
			if got != want {
				t.Errorf("%d was served, and not %d", got, want)
			}
		case <-time.After(5 * ttl):
			t.Fatal("nobody is served")
		}
	}
}

// Whoever deletes a member may leave behind what it has left there for a grant.
func TestALookWithoutItsEntryIsGrantedNothing(t *testing.T) {
	t.Parallel()
	p := part(t)
	s, held, c := p.store(t), claim("name", "holder"), claim("name", "waiter")
	grant(t, s, held)
	look(t, s, c)
	member := p.direct.ZRange(t.Context(), p.side("name", "line"), 0, 0).Val()[0]
	p.do(t, "zrem", p.side("name", "line"), member)
	p.do(t, "hdel", p.side("name", "line:beats"), member)
	release(t, s, held)
	is(t, renew(t, s, c), driver.ErrNotOwner)
}

// The TTL of the holders has ended, and whoever of their kind comes finds that. The release of the last one is a case of the suite.
func TestWhoSharesANameServesTheFirstOfTheQueueToo(t *testing.T) {
	t.Parallel()
	for what, comes := range map[string]func(t *testing.T, s driver.Driver, c driver.Claim){
		"to ask for it": func(t *testing.T, s driver.Driver, c driver.Claim) {
			t.Helper()
			_ = another(t, acquireWith(t.Context(), s, c))
		},
		"to wait": func(t *testing.T, s driver.Driver, c driver.Claim) { t.Helper(); look(t, s, c) },
		"to leave the queue": func(t *testing.T, s driver.Driver, c driver.Claim) {
			t.Helper()
			is(t, s.Release(t.Context(), c), driver.ErrNotOwner)
		},
	} {
		for kind, of := range map[string]func(*driver.Claim){"shared": reader, "limited": permit} {
			t.Run(kind+": "+what, func(t *testing.T) {
				t.Parallel()
				p := part(t)
				s, c := p.store(t), claim("name", "waiter")
				c.TTL = 10 * time.Second
				grant(t, s, claim("name", "holder", of))
				look(t, s, c)
				p.do(t, "del", p.key("name"))
				comes(t, s, claim("name", "other", of))
				ok(t, renew(t, s, c))
			})
		}
	}
}

// The holders have a key of their own beside the lock. It was evicted, as it has a TTL; or it has gone with the
// last of them in the very millisecond in which the next one comes.
func TestHoldersWhoseKeyHasGoneDoNotStayForEver(t *testing.T) {
	t.Parallel()
	p := part(t)
	s := p.store(t)
	grant(t, s, claim("name", "a", reader))
	if n := p.direct.Del(t.Context(), p.side("name", "holders")).Val(); n != 1 {
		t.Fatalf("%d keys", n)
	}
	grant(t, s, claim("name", "b", reader))
	if left := p.direct.PTTL(t.Context(), p.side("name", "holders")).Val(); left <= 0 {
		t.Errorf("the holders have a TTL of %v", left)
	}
}

// A hash beside the holders says since when each is one, and its label.
func TestTheNoteOfAHolderGoesWithIt(t *testing.T) {
	t.Parallel()
	p := part(t)
	s, holders, notes := p.store(t), p.side("name", "holders"), p.side("name", "holders:notes")
	join := func(token string, life time.Duration) driver.Claim {
		t.Helper()
		c := claim("name", token, labelled)
		c.TTL, c.Limit = life, 5
		grant(t, s, c)
		return c
	}
	stay := func(what string, n int64) {
		t.Helper()
		if there := p.direct.HLen(t.Context(), notes).Val(); there != n {
			t.Errorf("%s: %d notes, not %d", what, there, n)
		}
		if of, with := p.direct.PTTL(t.Context(), notes).Val(), p.direct.PTTL(t.Context(), holders).Val(); (of - with).Abs() > time.Second {
			t.Errorf("%s: the notes last for %s, the holders for %s", what, of, with)
		}
	}
	a, b := join("a", time.Minute), join("b", 2*time.Minute)
	stay("two", 2)
	release(t, s, b)
	stay("one has left", 1)
	c := with(join("c", 50*time.Millisecond), unrenewed)
	eventually(t, "it is over", func() bool { return renew(t, s, c) != nil })
	d := join("d", time.Minute)
	stay("one has died", 2)
	a.TTL = 3 * time.Minute
	ok(t, renew(t, s, a))
	stay("one was renewed", 2)
	ok(t, s.Evict(t.Context(), "name", known(t, s, "name").Holders[0].Handle))
	stay("one was taken the name from", 1)
	_ = s.Release(t.Context(), a) // one of them has lost it
	_ = s.Release(t.Context(), d)
	if n := p.direct.Exists(t.Context(), holders, notes).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	// Notes are for people: a holder does without.
	e := join("e", time.Minute)
	p.do(t, "del", notes)
	ok(t, renew(t, s, e))
	if info := known(t, s, "name"); len(info.Holders) != 1 || info.Holders[0].Label != "" || info.Holders[0].HeldFor != 0 {
		t.Errorf("%+v", info)
	}
	release(t, s, e)
	p.do(t, "set", notes, "something else")
	grant(t, s, e)
	release(t, s, e)
}

// A place at the head of the queue keeps others of the holders' kind out, though there is room for them beside.
func TestWhoLeavesTellsTheNextWhoMayJoinTheHolders(t *testing.T) {
	t.Parallel()
	for what, of := range map[string]struct{ holder, leaver func(*driver.Claim) }{
		"a reader beside a limited number": {permit, reader}, "one of a limited number beside readers": {reader, permit},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := part(t)
			s, leaver := p.store(t), claim("name", "leaver", of.leaver)
			grant(t, s, claim("name", "holder", of.holder))
			look(t, s, leaver)
			look(t, s, claim("name", "next", of.holder))
			heard, _ := messages(t, p.direct, p.prefix)
			is(t, s.Release(t.Context(), leaver), driver.ErrNotOwner)
			eventually(t, "the next is told", func() bool { return len(heard()) > 0 })
		})
	}
}
