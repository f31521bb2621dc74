package drivertest

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// faulty is a fault, with the cases that find it.
type faulty struct {
	mutant
	found string
}

type (
	claim = driver.Claim
	grant = driver.Grant
)

// asks has c changed in Acquire and Wait.
func asks(change func(m *mutant, c *claim)) mutant {
	return mutant{
		acquire: func(m *mutant, ctx context.Context, c claim) (grant, error) {
			change(m, &c)
			return m.store.Acquire(ctx, c)
		},
		wait: func(m *mutant, ctx context.Context, c claim) (grant, error) {
			change(m, &c)
			return m.store.Wait(ctx, c)
		},
	}
}

// ends has c changed in Release.
func ends(change func(m *mutant, c *claim)) mutant {
	return mutant{release: func(m *mutant, ctx context.Context, c claim) error { change(m, &c); return m.store.Release(ctx, c) }}
}

// renews has the claims of renewals changed.
func renews(change func(m *mutant, c *claim)) mutant {
	return mutant{renew: func(m *mutant, ctx context.Context, claims []claim) []error {
		changed := append([]claim(nil), claims...)
		for i := range changed {
			change(m, &changed[i])
		}
		return m.store.Renew(ctx, changed)
	}}
}

// gives has what Acquire and Wait return changed.
func gives(change func(m *mutant, c claim, g *grant, err *error)) mutant {
	changed := func(m *mutant, c claim, g grant, err error) (grant, error) {
		m.hears()
		change(m, c, &g, &err)
		return g, err
	}
	return mutant{
		acquire: func(m *mutant, ctx context.Context, c claim) (grant, error) {
			g, err := m.store.Acquire(ctx, c)
			return changed(m, c, g, err)
		},
		wait: func(m *mutant, ctx context.Context, c claim) (grant, error) {
			g, err := m.store.Wait(ctx, c)
			return changed(m, c, g, err)
		},
	}
}

// when is a change of those claims alone that are so.
func when(so func(c claim) bool, change func(c *claim)) func(m *mutant, c *claim) {
	return func(_ *mutant, c *claim) {
		if so(*c) {
			change(c)
		}
	}
}

func isLimited(c claim) bool { return c.Limit > 1 }
func isKept(c claim) bool    { return c.Keep > 0 }

// waited is a change of the claims of those alone that have waited.
func waited(change func(c *claim)) func(m *mutant, c *claim) {
	return func(m *mutant, c *claim) {
		if n, _ := m.did("wait", *c); n > 0 {
			change(c)
		}
	}
}

// fails has the error of each Wait changed that has one.
func fails(change func(m *mutant, ctx context.Context, c claim, err error) error) mutant {
	return mutant{wait: func(m *mutant, ctx context.Context, c claim) (grant, error) {
		g, err := m.store.Wait(ctx, c)
		if err != nil {
			err = change(m, ctx, c, err)
		}
		return g, err
	}}
}

// countsFromItsAnswer is a grant that is trusted for too long.
func countsFromItsAnswer(_ *mutant, _ claim, g *grant, _ *error) { //nolint:gocritic // ptrToRefParam: as others change it
	g.Asked = time.Now()
}

func noMarker(c *claim)     { c.Dedup = 0 }
func onlyVerifies(c *claim) { c.TTL = 0 }

// everybody has those who are refused granted the name.
func everybody(g grant, err error) (grant, error) {
	if _, ok := errors.AsType[*driver.Held](err); ok {
		return grant{Fence: 1 << 50}, nil
	}
	return g, err
}

// looks has c look for the name once, and so stand in the queue.
func (m *mutant) looks(c claim) (grant, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Microsecond)
	defer cancel()
	c.Heard = nil
	return m.store.Wait(ctx, c)
}

// mutants are the faults, by the operation that has them.
var mutants = map[string]faulty{
	"its capabilities change": {mutant{can: func() func(driver.Capabilities) driver.Capabilities {
		n := 0
		return func(c driver.Capabilities) driver.Capabilities { n++; c.MaxName = n; return c }
	}()}, "CapabilitiesAreAlwaysTheSame"},
	"it can be closed once": {mutant{close: func(m *mutant) error {
		m.asked("close", claim{})
		if n, _ := m.did("close", claim{}); n > 1 {
			return errors.New("closed")
		}
		return nil
	}}, "CloseReturnsAndWhatItEndedBeginsAgain"},
	"Close waits for ever": {
		mutant{close: func(*mutant) error { time.Sleep(time.Minute); return nil }}, "ASilentServiceEndsNoCallLate",
	},
	"names stay":                           {mutant{leftover: []string{"name-1"}}, "NamesUsedOnceLeaveNothing"},
	"an outage loses data":                 {mutant{forgets: true}, "AKilledServerIsUnavailableAndComesBack"},
	"nobody knows that it is not reached":  {mutant{unreachable: errors.New("no route")}, "AServiceThatCannotBeReachedSaysSo"},
	"an old message is believed":           {mutant{believes: func(string, string) bool { return true }}, "AForgedMessageGrantsNothing"},
	"a message with the token is believed": {mutant{believes: strings.HasPrefix}, "AForgedMessageGrantsNothing"},
	"a message with the token and another number is believed": {mutant{believes: func(text, token string) bool {
		return strings.HasPrefix(text, token) && !strings.HasPrefix(text, token+" 1")
	}}, "AForgedMessageGrantsNothing"},
	"it ignores contexts": {mutant{
		acquire: func(m *mutant, ctx context.Context, c claim) (grant, error) {
			return m.store.Acquire(context.WithoutCancel(ctx), c)
		},
		renew: func(m *mutant, ctx context.Context, all []claim) []error {
			return m.store.Renew(context.WithoutCancel(ctx), all)
		},
		release: func(m *mutant, ctx context.Context, c claim) error {
			return m.store.Release(context.WithoutCancel(ctx), c)
		},
	}, "ACallWhoseContextHasEndedDoesNothing ASilentServiceEndsNoCallLate"},

	// What is asked for.
	"names meet": {asks(func(_ *mutant, c *claim) { c.Name = strings.ToLower(c.Name) }), "NamesDoNotMeet"},
	"a TTL is half of it": {asks(func(_ *mutant, c *claim) { c.TTL /= 2 }), `AnExpiredGrantIsOver
		AGrantIsTrustedNoLongerThanItLasts`},
	"the first TTL stays":             {asks(func(m *mutant, c *claim) { _, *c = m.did("", *c) }), "AnOwnerThatAsksForSomethingElseHasIt"},
	"a reader has twice the time":     {asks(when(claim.Shared, func(c *claim) { c.TTL *= 2 })), "EachOfThoseWhoShareHasItsOwnTime"},
	"one of a few has twice the time": {asks(when(isLimited, func(c *claim) { c.TTL *= 2 })), "EachOfThoseWhoShareHasItsOwnTime"},
	"who waits with Keep is granted little": {
		asks(when(isKept, func(c *claim) { c.TTL = driver.PlaceLife(c.TTL) })), "WhatMustBeLookedAtIsNeverGrantedDirectly",
	},
	"there is room for one more": {
		asks(when(isLimited, func(c *claim) { c.Limit++ })), "AsManyHoldAsTheLimitAllows KindsDoNotMeetUnderConcurrency",
	},
	"a limit is a reader": {
		asks(when(isLimited, func(c *claim) { c.Limit = driver.Readers })), "WhoComesBetweenTheRequestsOfACallIsRespected",
	},
	"markers are not looked for": {asks(func(_ *mutant, c *claim) { c.Dedup = 0 }), "AMarkerStopsThoseWhoAskForIt"},
	"a hand-off is ignored": {
		asks(func(_ *mutant, c *claim) { c.Handoff = "" }), "AHandoffGoesBeforeTheQueue ANameLeftForAHandoffGoesToNobodyElse",
	},

	// What is given.
	"whoever asks owns the name": {
		gives(func(_ *mutant, _ claim, g *grant, err *error) { *g, *err = everybody(*g, *err) }),
		`AGrantExcludesOthersUntilItsRelease KindsDoNotMeetUnderConcurrency ReadersShareAndWritersDoNot ReadersDoNotStarveAWriterThatWaits
		AForeignValueIsHeldAndNeverOverwritten AHandoffWorksOnceAndAgainForWhoHasUsedIt AFreeNameIsForTheFirstInTheQueue`,
	},
	"fences stand still": {
		gives(func(_ *mutant, _ claim, g *grant, _ *error) { g.Fence = 7 }), "FencesGrowOnEveryPath AReadersFenceIsNotOlderThanTheLastWriter",
	},
	"blocks are large beside others": {
		gives(func(_ *mutant, c claim, g *grant, _ *error) { g.Fences = c.Fences }), "BlocksAreSmallWhileOthersAreInTheQueue",
	},
	"a grant counts from its answer": {gives(countsFromItsAnswer), "AGrantIsTrustedNoLongerThanItLasts"},
	"a grant that was asked for counts from its answer": {
		mutant{acquire: gives(countsFromItsAnswer).acquire}, "AGrantIsTrustedNoLongerThanItLasts",
	},
	"a direct grant has the full TTL": {gives(func(_ *mutant, _ claim, g *grant, _ *error) { g.TTL = 0 }), "AGrantIsTrustedNoLongerThanItLasts"},
	"a smaller limit is not told":     {gives(func(_ *mutant, _ claim, g *grant, _ *error) { g.Limit = 0 }), "WhereLimitsDifferTheSmallestCounts"},
	"a refusal always has a label": {gives(func(_ *mutant, _ claim, _ *grant, err *error) {
		if held, ok := errors.AsType[*driver.Held](*err); ok && held.Label == "" {
			held.Label = "somebody"
		}
	}), "WhatMustBeLookedAtIsNeverGrantedDirectly"},
	"who is granted the name stays in the queue": {gives(func(m *mutant, c claim, _ *grant, err *error) {
		if *err == nil {
			c.Token += "again"
			_, _ = m.looks(c)
		}
	}), "AGrantThatNobodyHearsOfIsFoundOrGivenBack AReleaseAtTheWaitIsNotMissed"},

	// Acquire.
	"a refused acquire stays in the queue": {mutant{acquire: func(m *mutant, ctx context.Context, c claim) (grant, error) {
		g, err := m.store.Acquire(ctx, c)
		if err != nil {
			_, _ = m.looks(c)
		}
		return g, err
	}}, "AGrantExcludesOthersUntilItsRelease"},
	"a repeated acquire does nothing": {mutant{acquire: func(m *mutant, ctx context.Context, c claim) (grant, error) {
		if m.owns(c) {
			return grant{Fence: 1 << 50}, nil
		}
		return m.store.Acquire(ctx, c)
	}}, "AcquireIsIdempotentPerToken"},
	"an owner is refused as by itself": {mutant{acquire: func(m *mutant, ctx context.Context, c claim) (grant, error) {
		if m.owns(c) {
			return grant{}, &driver.Held{}
		}
		return m.store.Acquire(ctx, c)
	}}, "EachOperationSurvivesAConnectionCutAtEachStep AcquireIsIdempotentPerToken"},
	"a permit asked for again is another one": {mutant{acquire: asks(func(m *mutant, c *claim) {
		if n, _ := m.did("acquire", *c); n > 1 {
			c.Token += "again"
		}
	}).acquire}, "AcquireIsIdempotentPerToken"},
	"only one fence of a block is reserved": {mutant{acquire: func(m *mutant, ctx context.Context, c claim) (grant, error) {
		n := c.Fences
		c.Fences = 0
		g, err := m.store.Acquire(ctx, c)
		g.Fences = n
		return g, err
	}}, "FencesGrowOnEveryPath"},
	"a hand-off needs a name that was left": {mutant{acquire: func(m *mutant, ctx context.Context, c claim) (grant, error) {
		if info, _ := m.store.Inspect(ctx, c.Name); c.Handoff != "" && !info.Held {
			return grant{}, &driver.Held{}
		}
		return m.store.Acquire(ctx, c)
	}}, "AHandoffOfNoNameIsAnOrdinaryClaim"},

	// Wait.
	"whoever waits owns the name": {mutant{wait: func(m *mutant, _ context.Context, c claim) (grant, error) {
		return everybody(m.looks(c))
	}}, `KindsDoNotMeetUnderConcurrency AHandoffOfNoNameIsAnOrdinaryClaim AForeignValueInFrontOfAQueueIsWaitedFor
		AWaiterGetsThePermitThatComesFree`},
	"a wait begins late": {
		mutant{wait: asks(func(*mutant, *claim) { time.Sleep(time.Second) }).wait},
		"AWaiterIsGrantedTheNameAtItsRelease AWaitTellsEachRefusalAndReturnsTheLast AWaitForWorkThatIsDoneSaysSoAtOnce",
	},
	"a wait ends late": {mutant{wait: func(m *mutant, ctx context.Context, c claim) (grant, error) {
		defer time.Sleep(2500 * time.Millisecond)
		return m.store.Wait(ctx, c)
	}}, `AWaitForAnExpiredNameIsGranted AWaiterGetsThePermitThatComesFree AWaiterGetsAKeptNameAtItsTime AWaiterGetsWhatAForeignHolderLeaves
		EntriesAreServedInTheirOrder`},
	"waiters hear nothing and have no queue": {mutant{wait: func(m *mutant, ctx context.Context, c claim) (grant, error) {
		return driver.Poll(ctx, c, m.store.Acquire)
	}}, `AWaiterIsGrantedTheNameAtItsRelease AReleaseAtTheWaitIsNotMissed EntriesAreServedInTheirOrder AFreeNameIsForTheFirstInTheQueue
		WhoeverFindsTheNameFreeServesTheFirst`},
	"a wait looks once": {mutant{wait: func(m *mutant, ctx context.Context, c claim) (grant, error) {
		_, _ = m.looks(c)
		return driver.Poll(ctx, c, m.store.Acquire)
	}}, "EntriesAreServedInTheirOrder"},
	"who gets no new connection hears nothing": {mutant{wait: func(m *mutant, ctx context.Context, c claim) (grant, error) {
		if m.unlinked != nil && m.unlinked.Load() {
			_, _ = m.looks(c)
			c.Tell(&driver.Held{})
			<-ctx.Done()
			return grant{}, ctx.Err()
		}
		return m.store.Wait(ctx, c)
	}}, "AWaiterWithoutNewConnectionsIsServedInItsTurn"},
	"a wait tells of its first look alone": {mutant{wait: asks(func(_ *mutant, c *claim) {
		var once sync.Once
		tell := c.Tell
		c.Heard = func(h *driver.Held) { once.Do(func() { tell(h) }) }
	}).wait}, "AWaitTellsEachRefusalAndReturnsTheLast"},
	"an owner's wait does nothing": {mutant{wait: func(m *mutant, ctx context.Context, c claim) (grant, error) {
		if m.owns(c) {
			return grant{Fence: 1 << 50}, nil
		}
		return m.store.Wait(ctx, c)
	}}, "AcquireIsIdempotentPerToken"},
	"a token waits once": {mutant{wait: func(m *mutant, ctx context.Context, c claim) (grant, error) {
		if n, _ := m.did("wait", c); n > 1 {
			<-ctx.Done()
			return grant{}, &driver.Held{}
		}
		return m.store.Wait(ctx, c)
	}}, "ALaterWaitOfTheSameTokenIsGranted AGrantThatNobodyHearsOfIsFoundOrGivenBack"},
	"the first wish stays": {mutant{wait: asks(func(m *mutant, c *claim) {
		heard := c.Heard
		_, *c = m.did("wait", *c)
		c.Heard = heard
	}).wait}, "WhatMustBeLookedAtIsNeverGrantedDirectly"},
	"everything is granted directly": {mutant{wait: asks(func(_ *mutant, c *claim) {
		c.Dedup, c.Keep, c.Handoff, c.Limit = 0, 0, "", 0
	}).wait}, `WhatMustBeLookedAtIsNeverGrantedDirectly AWaitForWorkThatIsDoneSaysSoAtOnce ReadersDoNotStarveAWriterThatWaits
		KindsDoNotMeetUnderConcurrency`},
	"a wait leaves the queue as it ends": {fails(func(m *mutant, ctx context.Context, c claim, err error) error {
		_ = m.store.Release(context.WithoutCancel(ctx), c)
		return err
	}), "EntriesAreServedInTheirOrder AFreeNameIsForTheFirstInTheQueue"},
	"entries do not die": {fails(func(m *mutant, _ context.Context, c claim, err error) error {
		go func() {
			for range 20 {
				time.Sleep(time.Second / 2)
				_, _ = m.looks(c)
			}
		}()
		return err
	}), "ADeadEntryIsDroppedByWhoeverMeetsIt"},
	"the end of ctx is an error of its own": {fails(func(_ *mutant, ctx context.Context, _ claim, err error) error {
		return cmp.Or(driver.NotSent(ctx.Err()), err)
	}), "AWaitTellsEachRefusalAndReturnsTheLast AWaitThatEndsBeforeItIsQueuedSaysSo"},
	"a wait that was not answered says held": {
		fails(func(*mutant, context.Context, claim, error) error { return &driver.Held{} }), "ASilentServiceEndsNoCallLate",
	},
	"a wait that was answered once says held": {mutant{wait: func(m *mutant, ctx context.Context, c claim) (grant, error) {
		var last atomic.Pointer[driver.Held]
		tell := c.Tell
		c.Heard = func(h *driver.Held) { last.Store(h); tell(h) }
		g, err := m.store.Wait(ctx, c)
		if held := last.Load(); err != nil && held != nil {
			err = held
		}
		return g, err
	}}, "ASilentServiceEndsNoCallLate"},

	// Renew.
	"a renewal takes the label":        {renews(func(_ *mutant, c *claim) { c.Label = "" }), "LabelsComeBackAsTheyWere"},
	"a writer's renewal only verifies": {renews(when(claim.Exclusive, onlyVerifies)), "RenewalGivesTheFullTTLAgain"},
	"a reader's renewal only verifies": {renews(when(claim.Shared, onlyVerifies)), "RenewalGivesTheFullTTLAgain"},
	"a direct grant stays short":       {renews(waited(onlyVerifies)), "RenewalGivesTheFullTTLAgain"},
	"a renewal has the first TTL": {renews(func(m *mutant, c *claim) {
		if n, first := m.did("acquire", *c); n > 0 && c.TTL > 0 {
			c.TTL = first.TTL
		}
	}), "AnOwnerThatAsksForSomethingElseHasIt"},
	"a verification renews": {renews(func(_ *mutant, c *claim) { c.TTL = max(c.TTL, time.Hour) }), "RenewalWithoutTTLOnlyVerifies"},
	"one fault fails a batch": {mutant{renew: func(m *mutant, ctx context.Context, claims []claim) []error {
		errs := m.store.Renew(ctx, claims)
		if errors.Join(errs...) != nil {
			for i := range errs {
				errs[i] = driver.ErrNotOwner
			}
		}
		return errs
	}}, "RenewalAnswersEachClaimForItself"},
	"the end of a batch is not looked at": {mutant{renew: func(m *mutant, ctx context.Context, claims []claim) []error {
		n := min(len(claims), 100)
		return append(m.store.Renew(ctx, claims[:n]), make([]error, len(claims)-n)...)
	}}, "RenewalAnswersEachClaimForItself"},
	"a renewal brings back what was released": {mutant{renew: func(m *mutant, ctx context.Context, claims []claim) []error {
		errs := m.store.Renew(ctx, claims)
		for i, c := range claims {
			if errs[i] != nil && c.TTL > 0 {
				_, errs[i] = m.store.Acquire(ctx, c)
			}
		}
		return errs
	}}, "WhoComesBetweenTheRequestsOfACallIsRespected ADeletedLeaseIsLost"},
	"every renewal is granted": {mutant{renew: func(m *mutant, ctx context.Context, claims []claim) []error {
		return make([]error, len(m.store.Renew(ctx, claims)))
	}}, "AForeignValueIsHeldAndNeverOverwritten EachOfThoseWhoShareHasItsOwnTime WhoComesBetweenTheRequestsOfACallIsRespected"},

	// Release.
	"a name is released whoever asks": {mutant{release: func(m *mutant, ctx context.Context, c claim) error {
		_ = m.store.Release(ctx, c)
		return nil
	}}, "OnlyTheOwnerReleases AReleaseByOneWhoOwnsNothingLeavesTheQueue"},
	"a reader is released whoever asks": {mutant{release: func(m *mutant, ctx context.Context, c claim) error {
		if err := m.store.Release(ctx, c); !c.Shared() {
			return err
		}
		return nil
	}}, "OnlyTheOwnerReleases"},
	"a second release does nothing": {mutant{release: func(m *mutant, ctx context.Context, c claim) error {
		if n, _ := m.did("release", c); n > 1 {
			return driver.ErrNotOwner
		}
		return m.store.Release(ctx, c)
	}}, "WhoComesBetweenTheRequestsOfACallIsRespected"},
	"who owns nothing stays in the queue": {mutant{release: func(m *mutant, ctx context.Context, c claim) error {
		if !m.owns(c) {
			return driver.ErrNotOwner
		}
		return m.store.Release(ctx, c)
	}}, "WaitersWhoGiveUpLeaveNothing AReleaseByOneWhoOwnsNothingLeavesTheQueue ReadersBesideAWriterThatGivesUpComeIn"},
	"a release of one who is told serves nobody": {ends(func(m *mutant, c *claim) {
		if n, _ := m.did("wait", *c); n > 0 && m.owns(*c) {
			c.Keep = time.Second
		}
	}), "AReleaseByOneWhoOwnsNothingLeavesTheQueue"},
	"an answer is an outage": {mutant{release: func(m *mutant, ctx context.Context, c claim) error {
		if m.store.Release(ctx, c) != nil {
			return driver.Unavailable(errors.New("it answers"))
		}
		return nil
	}}, "AnAnswerIsNoOutage"},
	"a reader leaves no marker":       {ends(when(claim.Shared, noMarker)), "AMarkerIsLeftHoweverTheNameWasGot"},
	"who has waited leaves no marker": {ends(waited(noMarker)), "AMarkerIsLeftHoweverTheNameWasGot"},
	"a kept name has no marker":       {ends(when(isKept, noMarker)), "AMarkerIsLeftHoweverTheNameWasGot"},
	"a marker stands half as long":    {ends(func(_ *mutant, c *claim) { c.Dedup /= 2 }), "AMarkerStopsThoseWhoAskForIt"},
	"who owns nothing leaves a marker": {mutant{release: func(m *mutant, ctx context.Context, c claim) error {
		err := m.store.Release(ctx, c)
		if err != nil && c.Dedup > 0 {
			if _, err := m.store.Acquire(ctx, c); err == nil {
				_ = m.store.Release(ctx, c)
			}
		}
		return err
	}}, "OnlyTheOwnerCompletes"},
	"the next release takes the marker": {mutant{release: func(m *mutant, ctx context.Context, c claim) error {
		if c.Dedup == 0 {
			_ = m.store.Unmark(ctx, c.Name, "pay")
		}
		return m.store.Release(ctx, c)
	}}, "AMarkerStopsThoseWhoAskForIt"},
	"nothing is kept": {
		ends(func(_ *mutant, c *claim) { c.Keep, c.Handoff = 0, "" }),
		"AKeptNameIsTakenByNobodyUntilItsTime AWaiterGetsAKeptNameAtItsTime ANameLeftForAHandoffGoesToNobodyElse",
	},
	"a name is kept for its TTL at most": {ends(func(_ *mutant, c *claim) { c.Keep = min(c.Keep, c.TTL) }), "AKeptNameIsTakenByNobodyUntilItsTime"},
	"a name is left for half as long": {
		ends(func(_ *mutant, c *claim) { c.Keep /= 2 }), "ANameLeftForAHandoffGoesToNobodyElse AKeptNameIsTakenByNobodyUntilItsTime",
	},
	"what was acquired with Keep is kept": {ends(func(m *mutant, c *claim) {
		_, first := m.did("acquire", *c)
		c.Keep = max(c.Keep, first.Keep)
	}), "AKeptNameIsTakenByNobodyUntilItsTime"},
}
