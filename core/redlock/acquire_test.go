package redlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

func TestWhatTheNodesSayDecidesAnAcquire(t *testing.T) {
	t.Parallel()
	type want int
	const (
		granted want = iota
		held
		unknown
		notSent
	)
	for name, c := range map[string]struct {
		fates []lab.Fate
		squat []int
		want  want
	}{
		"all grant":                            {fates: []lab.Fate{0, 0, 0}, want: granted},
		"a quorum of three":                    {fates: []lab.Fate{0, lab.Refused, 0}, want: granted},
		"no quorum of three":                   {fates: []lab.Fate{0, lab.Refused, lab.Refused}, want: notSent}, // the one is given back
		"nobody was asked":                     {fates: []lab.Fate{lab.Refused, lab.Refused, lab.Refused}, want: notSent},
		"one may have granted":                 {fates: []lab.Fate{lab.Refused, lab.RequestLost, lab.Refused}, want: unknown},
		"two are enough to hold three":         {fates: []lab.Fate{0, 0, 0}, squat: []int{0, 2}, want: held},
		"one of three is in nobody's way":      {fates: []lab.Fate{0, 0, 0}, squat: []int{1}, want: granted},
		"one says held, others nothing":        {fates: []lab.Fate{0, lab.RequestLost, lab.ReplyLost}, squat: []int{0}, want: held},
		"one says held, others are down":       {fates: []lab.Fate{0, lab.Refused, lab.Refused}, squat: []int{0}, want: held},
		"half of four is no quorum":            {fates: []lab.Fate{0, 0, lab.Refused, lab.Refused}, want: notSent},
		"half of four is no quorum for either": {fates: []lab.Fate{0, 0, 0, 0}, squat: []int{0, 1}, want: held},
		"three of four are":                    {fates: []lab.Fate{0, 0, lab.Refused, 0}, want: granted},
		"three of five, two black holes":       {fates: []lab.Fate{lab.RequestLost, 0, 0, lab.ReplyLost, 0}, want: granted},
		"three of five, two squatters":         {fates: []lab.Fate{0, 0, 0, 0, 0}, squat: []int{0, 1}, want: granted},
		"two of five, a squatter, two down":    {fates: []lab.Fate{0, 0, 0, lab.Refused, lab.ReplyReset}, squat: []int{0}, want: held},
		"two of five, three resets":            {fates: []lab.Fate{0, 0, lab.ReplyReset, lab.ReplyReset, lab.ReplyReset}, want: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMesh(t, len(c.fates), func(t *testing.T, m *mesh) {
				p := m.process()
				p.next(lab.OpAcquire, c.fates...)
				m.squat(c.squat...)
				_, err := p.store.Acquire(t.Context(), p.claim("token"))
				synctest.Wait()
				switch c.want {
				case granted:
					ok(t, err)
					ok(t, p.store.Release(t.Context(), p.claim("token")))
				case held:
					isHeld(t, err)
				case unknown:
					isUnknown(t, err)
				case notSent:
					isErr(t, err, driver.ErrNotSent)
				}
				time.Sleep(ttl / 2) // less than it would take by itself
				m.wantTaken(len(c.squat))
			})
		})
	}
}

func TestAQuorumDoesNotWaitForSlowNodes(t *testing.T) {
	t.Parallel()
	inMesh(t, 5, func(t *testing.T, m *mesh) {
		p := m.process()
		p.next(lab.OpAcquire, lab.RequestLost, lab.ReplyLost)
		began := time.Now()
		x, err := p.locks.TryAcquire(t.Context(), "name", core.WithoutRenewal())
		ok(t, err)
		slept := time.Until(x.ValidUntil()) - ttl*2/5
		time.Sleep(slept)
		p.next(lab.OpRenew, lab.RequestLost, lab.ReplyLost)
		ok(t, core.Confirm(x.Context())) // which renews
		if left := time.Until(x.ValidUntil()); left < ttl*4/5 {
			t.Errorf("%s left", left)
		}
		p.next(lab.OpRelease, lab.RequestLost, lab.ReplyLost)
		ok(t, x.Release(t.Context()))
		m.squat(2, 3, 4)
		p.next(lab.OpAcquire, lab.RequestLost, lab.ReplyLost)
		_, err = p.locks.TryAcquire(t.Context(), "name")
		is(t, err, core.ErrHeld)
		if took := time.Since(began) - slept; took != 0 {
			t.Errorf("took %s", took)
		}
	})
}

// Where the vote is split, one that is silent is waited for, but not for long.
func TestANodeThatIsSilentCostsASplitVoteLittle(t *testing.T) {
	t.Parallel()
	inMesh(t, 5, func(t *testing.T, m *mesh) {
		p := m.process()
		m.squat(0, 1)
		p.next(lab.OpAcquire, 0, 0, 0, 0, lab.RequestLost)
		began := time.Now()
		_, err := p.store.Acquire(t.Context(), p.claim("token"))
		isHeld(t, err)
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("took %s", took)
		}
	})
}

func TestHeldSaysWhenAQuorumComesFreeAtTheLatest(t *testing.T) {
	t.Parallel()
	inMesh(t, 5, func(t *testing.T, m *mesh) {
		for i, seconds := range []int{5, 3, 1, 9, 7} {
			_, err := m.stores[i].Acquire(t.Context(), driver.Claim{Name: "name", Token: "other", Label: "label", TTL: time.Duration(seconds) * time.Second})
			ok(t, err)
		}
		p := m.process()
		for _, l := range p.links {
			l.Delay(0, time.Millisecond) // all answers come at once
		}
		_, err := p.store.Acquire(t.Context(), p.claim("token"))
		h, ok := errors.AsType[*driver.Held](err)
		if !ok || h.Label != "label" || h.Exact || h.Remaining < 5*time.Second-time.Millisecond || h.Remaining > 9*time.Second {
			t.Errorf("%+v", err)
		}
	})
}

// capped is a node that grants no more than its own TTL.
type capped struct {
	driver.Driver
	ttl time.Duration
}

func (c capped) Acquire(ctx context.Context, claim driver.Claim) (driver.Grant, error) {
	claim.TTL = min(claim.TTL, c.ttl)
	g, err := c.Driver.Acquire(ctx, claim)
	g.TTL, g.Longest = claim.TTL, claim.TTL
	return g, err
}

func (c capped) Renew(ctx context.Context, claims []driver.Claim) []error {
	own := append([]driver.Claim(nil), claims...)
	for i := range own {
		own[i].TTL = min(own[i].TTL, c.ttl)
	}
	return c.Driver.Renew(ctx, own)
}

func TestValidityIsTheShortestOfTheBestQuorum(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ttls []int // in seconds
		want int
	}{
		{[]int{5, 4, 3, 2, 1}, 3},
		{[]int{1, 9, 2, 8, 7}, 7},
		{[]int{1, 2, 99, 99, 99}, 10},
		{[]int{4, 3, 2, 1}, 2},
		{[]int{3, 1, 2}, 2},
	} {
		inMesh(t, 0, func(t *testing.T, _ *mesh) {
			var nodes []driver.Driver
			for _, seconds := range c.ttls {
				nodes = append(nodes, &capped{memlock.New(), time.Duration(seconds) * time.Second})
			}
			s := redlock.New(nodes)
			for range 2 { // asked again, it is the same
				g, err := s.Acquire(t.Context(), driver.Claim{Name: "name", Token: "token", TTL: ttl})
				ok(t, err)
				if g.TTL != time.Duration(c.want)*time.Second {
					t.Errorf("%v: %s", c.ttls, g.TTL)
				}
			}
			synctest.Wait()
		})
	}
}

// Of five nodes two grant less than the other three promise. They are no help when one of
// those three is gone.
func TestANodeThatGrantsLessThanWasPromisedDoesNotCount(t *testing.T) {
	t.Parallel()
	inMesh(t, 0, func(t *testing.T, _ *mesh) {
		var nodes []driver.Driver
		var links []*lab.Net
		for _, seconds := range []int{2, 2, 99, 99, 99} {
			links = append(links, lab.New(&capped{memlock.New(), time.Duration(seconds) * time.Second}))
			nodes = append(nodes, links[len(links)-1])
		}
		s := redlock.New(nodes)
		c := driver.Claim{Name: "name", Token: "token", TTL: ttl}
		_, err := s.Acquire(t.Context(), c)
		ok(t, err)
		synctest.Wait()
		ok(t, s.Renew(t.Context(), []driver.Claim{c})[0])
		links[4].All(lab.Refused)
		isUnknown(t, s.Renew(t.Context(), []driver.Claim{c})[0])
		synctest.Wait()
	})
}

type limited struct {
	*memlock.Store
	can driver.Capabilities
}

func (l *limited) Capabilities() driver.Capabilities { return l.can }

func TestTheNodesBoundWhatItCan(t *testing.T) {
	t.Parallel()
	nodes := []driver.Driver{
		&limited{memlock.New(), driver.Capabilities{Fence: true, Dedup: true, Block: true, MinTTL: time.Second, MaxName: 100}},
		&limited{memlock.New(), driver.Capabilities{Fence: true, Dedup: true, Block: true, MinTTL: 2 * time.Second}},
		&limited{memlock.New(), driver.Capabilities{Fence: true, Dedup: true, Block: true, MaxName: 50}},
	}
	s := redlock.New(nodes)
	want := driver.Capabilities{Backend: "redlock", Punctual: true, Hears: true, Queue: true, MinTTL: 2 * time.Second, MaxName: 50}
	if can := s.Capabilities(); can != want {
		t.Errorf("%+v; want %+v", can, want)
	}
}

// Core asks again with the same token where it has not heard the answer. What this grants must not be given back since
// the first promise has ended meanwhile.
func TestWhatAnAcquireIsGrantedAgainIsKeptBeyondTheFirstPromise(t *testing.T) {
	t.Parallel()
	for what, opts := range map[string][]redlock.Option{"plain": nil, "fenced": {redlock.WithFence()}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inMesh(t, 5, func(t *testing.T, m *mesh) {
				p, q := m.process(opts...), m.process(opts...)
				_, err := p.store.Acquire(t.Context(), p.claim("token")) // core has not heard this
				ok(t, err)
				time.Sleep(ttl - 10*time.Millisecond)
				for i, l := range p.links {
					l.Delay(time.Duration(20+i)*time.Millisecond, 0)
				}
				_, err = p.store.Acquire(t.Context(), p.claim("token"))
				ok(t, err)
				time.Sleep(100 * time.Millisecond)
				m.wantTaken(5)
				_, err = q.store.Acquire(t.Context(), q.claim("other"))
				isHeld(t, err)
				ok(t, p.store.Release(t.Context(), p.claim("token")))
			})
		})
	}
}

// A node that refuses to be dialled does so at once, which says nothing about how long the others take.
func TestNodesThatAreDownHurryNobody(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		inMesh(t, n, func(t *testing.T, m *mesh) {
			p := m.process()
			for i, l := range p.links {
				switch {
				case i == 0:
					l.Delay(time.Millisecond, 0)
				case i <= (n-1)/2:
					l.All(lab.Refused)
				default:
					l.Delay(60*time.Millisecond, 60*time.Millisecond)
				}
			}
			_, err := p.store.Acquire(t.Context(), p.claim("token"))
			ok(t, err)
			ok(t, p.store.Release(t.Context(), p.claim("token")))
			p.links[n-1].All(lab.RequestLost) // one too many, which may only be far away
			began := time.Now()
			_, err = p.store.Acquire(t.Context(), p.claim("token"))
			isUnknown(t, err)
			if took := time.Since(began); took > time.Second {
				t.Errorf("%d nodes: told after %v", n, took)
			}
		})
	}
}

// The operator mends the one while the others come back.
func TestOneNodeThatRefusesItsClientEndsNoWait(t *testing.T) {
	t.Parallel()
	inMesh(t, 5, func(t *testing.T, m *mesh) {
		wrong := driver.NotSent(driver.Refused(errors.New("WRONGPASS")))
		p := m.process()
		p.links[0].All(lab.Refused)
		p.links[1].All(lab.Refused)
		one := m.over([]driver.Driver{p.links[0], p.links[1], m.stores[2], m.stores[3], says{m.stores[4], wrong}})
		time.AfterFunc(time.Second, p.heal)
		x, err := one.locks.Acquire(t.Context(), "name")
		ok(t, err)
		ok(t, x.Release(t.Context()))

		all := m.over([]driver.Driver{m.stores[0], m.stores[1], says{m.stores[2], wrong}, says{m.stores[3], wrong}, says{m.stores[4], wrong}})
		_, err = all.store.Acquire(t.Context(), all.claim("token"))
		is(t, err, driver.ErrRefused)
	})
}

func TestNothingIsLeftOfAnAcquireThatWasNotSent(t *testing.T) {
	t.Parallel()
	inMesh(t, 5, func(t *testing.T, m *mesh) {
		p := m.process()
		p.next(lab.OpAcquire, 0, lab.Refused, lab.Refused, lab.Refused, lab.HeldBack)
		p.links[0].Next(lab.OpRelease, lab.HeldBack)
		go func() {
			time.Sleep(150 * time.Millisecond) // the last one has answered: it had nothing to release
			p.links[4].All(lab.Refused, lab.OpRelease)
			p.links[4].Deliver() // the acquire
			time.Sleep(10 * time.Millisecond)
			p.links[0].Deliver()
		}()
		_, err := p.store.Acquire(t.Context(), p.claim("token"))
		isUnknown(t, err)
		p.heal()
	})
}

// A node can be back long after the first tries to give it back.
func TestANodeThatComesBackIsGivenBackWhatItHas(t *testing.T) {
	t.Parallel()
	inMesh(t, 3, func(t *testing.T, m *mesh) {
		p := m.process()
		p.next(lab.OpAcquire, 0, lab.Refused, lab.Refused)
		p.links[0].All(lab.Refused, lab.OpRelease)
		c := p.claim("token")
		c.TTL = 10 * time.Minute
		_, err := p.store.Acquire(t.Context(), c)
		isUnknown(t, err)
		time.Sleep(3 * time.Second)
		p.heal()
		time.Sleep(30 * time.Second)
		m.wantTaken(0)
	})
}
