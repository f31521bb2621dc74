package drivertest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// mutant is a memory backend with a fault. What is nil is as it should be.
type mutant struct {
	store   *memlock.Store
	mail    *mail
	process int // counted from 0

	can     func(c driver.Capabilities) driver.Capabilities
	acquire func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error)
	wait    func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error)
	renew   func(m *mutant, ctx context.Context, claims []driver.Claim) []error
	release func(m *mutant, ctx context.Context, c driver.Claim) error
	close   func(ctx context.Context) error

	shows  func(info *inspect.LeaseInfo)
	evict  func(m *mutant, ctx context.Context, name, handle string) error
	unmark func(m *mutant, ctx context.Context, name, scope string) error

	believes    func(text, token string) bool // what a message makes it believe
	leftover    []string
	unreachable error // if it cannot be reached
	forgets     bool  // it loses its data in an outage

	unlinked *atomic.Bool  // it gets no new connections; nil without connections
	late     *atomic.Int64 // how late it hears of answers; nil without connections

	*memory // of all processes
}

// memory is what the processes of a mutant know together.
type memory struct {
	mu     sync.Mutex // protects the fields below
	claims map[string]driver.Claim
	grants map[string]driver.Grant
	flag   bool
}

// known returns the first claim and the last grant of c's token, and remembers c.
func (m *memory) known(c driver.Claim) (driver.Claim, driver.Grant, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first, ok := m.claims[c.Token]
	if !ok {
		m.claims[c.Token] = c
		first = c
	}
	return first, m.grants[c.Token], ok
}

func (m *memory) granted(c driver.Claim, g driver.Grant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grants[c.Token] = g
}

func (m *mutant) Capabilities() driver.Capabilities {
	can := m.store.Capabilities()
	if m.can != nil {
		can = m.can(can)
	}
	return can
}

func (m *mutant) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if m.acquire != nil {
		return m.acquire(m, ctx, c)
	}
	return m.store.Acquire(ctx, c)
}

func (m *mutant) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if m.wait != nil {
		return m.wait(m, ctx, c)
	}
	return m.mail.wait(ctx, c, m.store.Wait)
}

func (m *mutant) Renew(ctx context.Context, claims []driver.Claim) []error {
	if m.renew != nil {
		return m.renew(m, ctx, claims)
	}
	return m.store.Renew(ctx, claims)
}

func (m *mutant) Release(ctx context.Context, c driver.Claim) error {
	if m.release != nil {
		return m.release(m, ctx, c)
	}
	return m.store.Release(ctx, c)
}

func (m *mutant) Close(ctx context.Context) error {
	if m.close != nil {
		return m.close(ctx)
	}
	return nil
}

// hears returns once an answer has come.
func (m *mutant) hears() {
	if m.late != nil {
		time.Sleep(time.Duration(m.late.Load()))
	}
}

// owns says whether c's token owns its name.
func (m *mutant) owns(c driver.Claim) bool {
	c.TTL = 0
	return m.store.Renew(context.Background(), []driver.Claim{c})[0] == nil
}

// service opens a service whose processes all have the fault.
func (m mutant) service(testing.TB) Config {
	m.store, m.memory = memlock.New(), &memory{claims: map[string]driver.Claim{}, grants: map[string]driver.Grant{}}
	m.mail = &mail{believes: m.believes}
	return m.config()
}

func (m mutant) config() Config {
	s, processes := m.store, 0
	open := func() driver.Driver {
		one := m
		one.process = processes
		processes++
		return &one
	}
	return Config{
		Driver: open,
		Overwrite: func(name string) {
			s.Steal(name)
			s.Renew(context.Background(), []driver.Claim{{Name: name, Token: "thief", TTL: time.Hour}})
		},
		Delete:    s.Lose,
		Leftovers: func() []string { return m.leftover },
		Messages:  m.mail.open,
		Unreachable: func() driver.Driver {
			down := memlock.New()
			down.SetDown(true)
			if m.unreachable == nil {
				return down
			}
			return &mutant{
				store: down, mail: m.mail, memory: m.memory,
				acquire: func(*mutant, context.Context, driver.Claim) (driver.Grant, error) {
					return driver.Grant{}, m.unreachable
				},
			}
		},
		Through: func() (driver.Driver, []Wire) {
			one := open().(*mutant)
			one.unlinked, one.late = new(atomic.Bool), new(atomic.Int64)
			link := NewLink(one)
			return closing{link, one}, []Wire{hole{link, one}}
		},
		Own: func() Config {
			return Config{
				Driver: open,
				Kill:   func() { s.SetDown(true) },
				Restart: func() {
					s.SetDown(false)
					if m.forgets {
						s.Lose("name")
					}
				},
			}
		},
	}
}

// closing is a Link to a backend that can be closed.
type closing struct {
	*Link
	driver.Closer
}

// hole is a Link whose black hole holds up the looks of a Wait under way, too, and that the mutant's own client is behind.
type hole struct {
	*Link
	one *mutant
}

func (h hole) BlackHoleNew(on bool) { h.one.unlinked.Store(on) }

func (h hole) BlackHole(on bool) {
	if on {
		h.one.store.SetDelay(2 * time.Hour)
	} else {
		h.one.store.SetDelay(0)
	}
}

func (h hole) SetDelay(_, toClient time.Duration) { h.one.late.Store(int64(toClient)) }

func (h hole) Heal() {
	h.Link.Heal()
	h.one.store.SetDelay(0)
}

// mail is how those who wait are told of grants. It is there to be abused: the memory backend needs none.
type mail struct {
	believes func(text, token string) bool // nil means that it believes nothing

	mu      sync.Mutex // protects the fields below
	all     []Message
	waiting map[chan string]string // to the token that waits
}

func (m *mail) open(string) (heard func() []Message, send func(Message)) {
	return func() []Message {
			m.mu.Lock()
			defer m.mu.Unlock()
			return append([]Message(nil), m.all...)
		}, func(msg Message) {
			m.mu.Lock()
			defer m.mu.Unlock()
			for ch, token := range m.waiting {
				if m.believes != nil && m.believes(msg.Text, token) {
					select {
					case ch <- msg.Text:
					default:
					}
				}
			}
		}
}

func (m *mail) wait(ctx context.Context, c driver.Claim, wait func(context.Context, driver.Claim) (driver.Grant, error)) (driver.Grant, error) {
	ch := make(chan string, 1)
	m.mu.Lock()
	if m.waiting == nil {
		m.waiting = map[chan string]string{}
	}
	m.waiting[ch] = c.Token
	m.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fooled := make(chan bool, 1)
	over := make(chan struct{})
	go func() {
		defer cancel()
		select {
		case <-ch:
			fooled <- true
		case <-over:
			fooled <- false
		}
	}()
	g, err := wait(ctx, c)
	close(over)
	m.mu.Lock()
	delete(m.waiting, ch)
	if err == nil {
		m.all = append(m.all, Message{"channel", c.Token + " 1 nonce 17"})
	}
	m.mu.Unlock()
	if <-fooled {
		return driver.Grant{Fence: 1}, nil
	}
	return g, err
}

// Faults that several mutants have.

func everybody(g driver.Grant, err error) (driver.Grant, error) {
	if _, ok := errors.AsType[*driver.Held](err); ok {
		return driver.Grant{Fence: 1 << 50}, nil
	}
	return g, err
}

// asks has c changed in Acquire and Wait.
func asks(change func(m *mutant, c driver.Claim) driver.Claim) mutant {
	return mutant{
		acquire: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			return m.store.Acquire(ctx, change(m, c))
		},
		wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			return m.store.Wait(ctx, change(m, c))
		},
	}
}

// ends has c changed in Release.
func ends(change func(m *mutant, c driver.Claim) driver.Claim) mutant {
	return mutant{release: func(m *mutant, ctx context.Context, c driver.Claim) error {
		return m.store.Release(ctx, change(m, c))
	}}
}

// gives has the grants changed.
func gives(change func(m *mutant, c driver.Claim, g driver.Grant, err error) (driver.Grant, error)) mutant {
	return mutant{
		acquire: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			g, err := m.store.Acquire(ctx, c)
			m.hears()
			return change(m, c, g, err)
		},
		wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			g, err := m.store.Wait(ctx, c)
			m.hears()
			return change(m, c, g, err)
		},
	}
}

// renews has the claims of renewals changed.
func renews(change func(c driver.Claim) driver.Claim) mutant {
	return mutant{renew: func(m *mutant, ctx context.Context, claims []driver.Claim) []error {
		changed := make([]driver.Claim, len(claims))
		for i, c := range claims {
			changed[i] = change(c)
		}
		return m.store.Renew(ctx, changed)
	}}
}

// looks has c look for the name once, and so stand in the queue.
func (m *mutant) looks(c driver.Claim) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Microsecond)
	defer cancel()
	c.Heard = nil
	_, _ = m.store.Wait(ctx, c)
}

// faulty is a fault, with the cases that find it.
type faulty struct {
	mutant
	found []string
}

var mutants = map[string]faulty{
	"its capabilities change": {mutant{can: func() func(driver.Capabilities) driver.Capabilities {
		n := 0
		return func(c driver.Capabilities) driver.Capabilities { n++; c.MaxName = n; return c }
	}()}, []string{"CapabilitiesAreAlwaysTheSame"}},
	"whoever asks owns the name": {
		gives(func(_ *mutant, _ driver.Claim, g driver.Grant, err error) (driver.Grant, error) {
			return everybody(g, err)
		}),
		[]string{
			"AGrantExcludesOthersUntilItsRelease", "OneOwnerAtATimeUnderConcurrency", "ReadersShareAndWritersDoNot", "ReadersDoNotStarveAWriterThatWaits", "AForeignValueIsHeldAndNeverOverwritten", "AHandoffWorksOnceAndAgainForWhoHasUsedIt", "AFreeNameIsForTheFirstInTheQueue",
		},
	},
	"whoever waits owns the name": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Microsecond)
		defer cancel()
		c.Heard = nil
		return everybody(m.store.Wait(ctx, c))
	}}, []string{
		"OneOwnerAtATimeUnderConcurrency", "KindsDoNotMeetUnderConcurrency", "AHandoffOfNoNameIsAnOrdinaryClaim", "AForeignValueInFrontOfAQueueIsWaitedFor",
		"AWaiterGetsThePermitThatComesFree",
	}},
	"a refused acquire stays in the queue": {mutant{acquire: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := m.store.Acquire(ctx, c)
		if err != nil {
			m.looks(c)
		}
		return g, err
	}}, []string{"AGrantExcludesOthersUntilItsRelease"}},
	"a TTL is half of it": {
		asks(func(_ *mutant, c driver.Claim) driver.Claim { c.TTL /= 2; return c }),
		[]string{"AnExpiredGrantIsOver", "AGrantIsTrustedNoLongerThanItLasts"},
	},
	"a repeated acquire does nothing": {
		mutant{acquire: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			if _, g, again := m.known(c); again && m.owns(c) {
				return g, nil
			}
			g, err := m.store.Acquire(ctx, c)
			m.granted(c, g)
			return g, err
		}},
		[]string{"AcquireIsIdempotentPerToken"},
	},
	"the first TTL stays": {
		asks(func(m *mutant, c driver.Claim) driver.Claim { first, _, _ := m.known(c); return first }),
		[]string{"AnOwnerThatAsksForSomethingElseHasIt"},
	},
	"a name is released whoever asks": {mutant{release: func(m *mutant, ctx context.Context, c driver.Claim) error {
		_ = m.store.Release(ctx, c)
		return nil
	}}, []string{"OnlyTheOwnerReleases", "AReleaseByOneWhoOwnsNothingLeavesTheQueue"}},
	"a reader is released whoever asks": {mutant{release: func(m *mutant, ctx context.Context, c driver.Claim) error {
		if err := m.store.Release(ctx, c); !c.Shared() {
			return err
		}
		return nil
	}}, []string{"OnlyTheOwnerReleases"}},
	"a second release does nothing": {mutant{release: func(m *mutant, ctx context.Context, c driver.Claim) error {
		if _, _, again := m.known(c); again {
			return driver.ErrNotOwner
		}
		return m.store.Release(ctx, c)
	}}, []string{"AReleaseCleansUpBehindALateAcquire"}},
	"it ignores contexts": {
		mutant{
			acquire: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				return m.store.Acquire(context.WithoutCancel(ctx), c)
			},
			renew: func(m *mutant, ctx context.Context, claims []driver.Claim) []error {
				return m.store.Renew(context.WithoutCancel(ctx), claims)
			},
			release: func(m *mutant, ctx context.Context, c driver.Claim) error {
				return m.store.Release(context.WithoutCancel(ctx), c)
			},
		},
		[]string{"ACallWhoseContextHasEndedDoesNothing", "ASilentServiceEndsNoCallLate"},
	},
	"names meet": {
		asks(func(_ *mutant, c driver.Claim) driver.Claim { c.Name = strings.ToLower(c.Name); return c }),
		[]string{"NamesDoNotMeet"},
	},
	"a renewal takes the label": {
		renews(func(c driver.Claim) driver.Claim { c.Label = ""; return c }),
		[]string{"LabelsComeBackAsTheyWere"},
	},
	"a renewal only verifies": {
		renews(func(c driver.Claim) driver.Claim { c.TTL = 0; return c }),
		[]string{"RenewalGivesTheFullTTLAgain"},
	},
	"a reader's renewal only verifies": {
		renews(func(c driver.Claim) driver.Claim {
			if c.Shared() {
				c.TTL = 0
			}
			return c
		}),
		[]string{"RenewalGivesTheFullTTLAgain"},
	},
	"a direct grant stays short": {mutant{
		wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			m.known(c)
			return m.store.Wait(ctx, c)
		},
		renew: func(m *mutant, ctx context.Context, claims []driver.Claim) []error {
			changed := slices.Clone(claims)
			for i, c := range claims {
				m.mu.Lock()
				if _, waited := m.claims[c.Token]; waited {
					changed[i].TTL = 0
				}
				m.mu.Unlock()
			}
			return m.store.Renew(ctx, changed)
		},
	}, []string{"RenewalGivesTheFullTTLAgain"}},
	"a renewal has the first TTL": {mutant{
		acquire: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			m.known(c)
			return m.store.Acquire(ctx, c)
		},
		renew: func(m *mutant, ctx context.Context, claims []driver.Claim) []error {
			changed := slices.Clone(claims)
			for i, c := range claims {
				if first, _, known := m.known(c); known && c.TTL > 0 {
					changed[i].TTL = first.TTL
				}
			}
			return m.store.Renew(ctx, changed)
		},
	}, []string{"AnOwnerThatAsksForSomethingElseHasIt"}},
	"a verification renews": {
		renews(func(c driver.Claim) driver.Claim { c.TTL = max(c.TTL, time.Hour); return c }),
		[]string{"RenewalWithoutTTLOnlyVerifies"},
	},
	"one fault fails a batch": {mutant{renew: func(m *mutant, ctx context.Context, claims []driver.Claim) []error {
		errs := m.store.Renew(ctx, claims)
		if err := errors.Join(errs...); err != nil {
			for i := range errs {
				errs[i] = driver.ErrNotOwner
			}
		}
		return errs
	}}, []string{"RenewalAnswersEachClaimForItself"}},
	"the end of a batch is not looked at": {mutant{renew: func(m *mutant, ctx context.Context, claims []driver.Claim) []error {
		n := min(len(claims), 100)
		return append(m.store.Renew(ctx, claims[:n]), make([]error, len(claims)-n)...)
	}}, []string{"RenewalAnswersEachClaimForItself"}},
	"a renewal brings back what was released": {mutant{renew: func(m *mutant, ctx context.Context, claims []driver.Claim) []error {
		errs := m.store.Renew(ctx, claims)
		for i, c := range claims {
			if errs[i] != nil && c.TTL > 0 {
				_, errs[i] = m.store.Acquire(ctx, c)
			}
		}
		return errs
	}}, []string{"ARenewalAfterTheReleaseBringsNothingBack", "ADeletedLeaseIsLost"}},
	"every renewal is granted": {mutant{renew: func(m *mutant, ctx context.Context, claims []driver.Claim) []error {
		return make([]error, len(m.store.Renew(ctx, claims)))
	}}, []string{"AnOverwrittenLeaseIsLostAndNotTouched", "EachOfThoseWhoShareHasItsOwnTime"}},
	"fences stand still": {
		gives(func(_ *mutant, _ driver.Claim, g driver.Grant, err error) (driver.Grant, error) {
			g.Fence = 7
			return g, err
		}),
		[]string{"FencesGrowOnEveryPath", "AReadersFenceIsNotOlderThanTheLastWriter"},
	},
	"only one fence of a block is reserved": {
		mutant{
			acquire: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				n := c.Fences
				c.Fences = 0
				g, err := m.store.Acquire(ctx, c)
				g.Fences = n
				return g, err
			},
		},
		[]string{"BlocksOfFencesNeverMeet"},
	},
	"blocks are large beside others": {
		gives(func(_ *mutant, c driver.Claim, g driver.Grant, err error) (driver.Grant, error) {
			g.Fences = c.Fences
			return g, err
		}),
		[]string{"BlocksAreSmallWhileOthersAreInTheQueue"},
	},
	"a wait begins late": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		time.Sleep(time.Second)
		return m.store.Wait(ctx, c)
	}}, []string{"AWaiterIsGrantedTheNameAtItsRelease", "AWaitTellsEachRefusalAndReturnsTheLast", "AWaitForWorkThatIsDoneSaysSoAtOnce"}},
	"a wait ends late": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := m.store.Wait(ctx, c)
		time.Sleep(2500 * time.Millisecond)
		return g, err
	}}, []string{
		"AWaitForAnExpiredNameIsGranted", "AWaiterGetsThePermitThatComesFree", "AWaiterGetsAKeptNameAtItsTime", "AWaiterGetsWhatAForeignHolderLeaves",
		"EntriesAreServedInTheirOrder",
	}},
	"waiters hear nothing and have no queue": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		return driver.Poll(ctx, c, m.store.Acquire)
	}}, []string{
		"AWaiterIsGrantedTheNameAtItsRelease", "AReleaseAtTheWaitIsNotMissed", "EntriesAreServedInTheirOrder", "AFreeNameIsForTheFirstInTheQueue",
		"WhoeverFindsTheNameFreeServesTheFirst",
	}},
	"who gets no new connection hears nothing": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		if m.unlinked != nil && m.unlinked.Load() {
			m.looks(c)
			c.Tell(&driver.Held{})
			<-ctx.Done()
			return driver.Grant{}, ctx.Err()
		}
		return m.store.Wait(ctx, c)
	}}, []string{"AWaiterWithoutNewConnectionsIsServedInItsTurn"}},
	"the first process is the first": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		for first := true; ; first = false {
			g, err := m.store.Acquire(ctx, c)
			if held, ok := errors.AsType[*driver.Held](err); ok && first {
				c.Tell(held)
			}
			if err == nil || ctx.Err() != nil {
				return g, err
			}
			time.Sleep(time.Duration(m.process+1) * time.Millisecond)
		}
	}}, []string{"WaitersOfManyProcessesAreServedFairly"}},
	"the end of ctx is an error of its own": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := m.store.Wait(ctx, c)
		if err != nil && ctx.Err() != nil {
			err = driver.NotSent(ctx.Err())
		}
		return g, err
	}}, []string{"AWaitTellsEachRefusalAndReturnsTheLast", "AWaitThatEndsBeforeItIsQueuedSaysSo"}},
	"a wait tells of its first look alone": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		var once sync.Once
		tell := c.Tell
		c.Heard = func(h *driver.Held) { once.Do(func() { tell(h) }) }
		return m.store.Wait(ctx, c)
	}}, []string{"AWaitTellsEachRefusalAndReturnsTheLast"}},
	"an owner's wait does nothing": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		if m.owns(c) {
			return driver.Grant{Fence: 1 << 50}, nil
		}
		return m.store.Wait(ctx, c)
	}}, []string{"AcquireIsIdempotentPerToken"}},
	"a grant that was asked for counts from its answer": {mutant{acquire: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := m.store.Acquire(ctx, c)
		m.hears()
		g.Asked = time.Now()
		return g, err
	}}, []string{"AGrantIsTrustedNoLongerThanItLasts"}},
	"a grant counts from its answer": {
		gives(func(_ *mutant, _ driver.Claim, g driver.Grant, err error) (driver.Grant, error) {
			g.Asked = time.Now()
			return g, err
		}),
		[]string{"AGrantIsTrustedNoLongerThanItLasts"},
	},
	"a direct grant has the full TTL": {
		gives(func(_ *mutant, _ driver.Claim, g driver.Grant, err error) (driver.Grant, error) {
			g.TTL = 0
			return g, err
		}),
		[]string{"AGrantIsTrustedNoLongerThanItLasts"},
	},
	"a token waits once": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		if _, _, again := m.known(c); again {
			<-ctx.Done()
			return driver.Grant{}, &driver.Held{}
		}
		return m.store.Wait(ctx, c)
	}}, []string{"ALaterWaitOfTheSameTokenIsGranted", "AGrantThatNobodyHearsOfIsFoundOrGivenBack"}},
	"who owns nothing stays in the queue": {mutant{release: func(m *mutant, ctx context.Context, c driver.Claim) error {
		if !m.owns(c) {
			return driver.ErrNotOwner
		}
		return m.store.Release(ctx, c)
	}}, []string{
		"WaitersWhoGiveUpLeaveNothing", "AReleaseByOneWhoOwnsNothingLeavesTheQueue", "ReadersBesideAWriterThatGivesUpComeIn",
	}},
	"a release of one who is told serves nobody": {mutant{release: func(m *mutant, ctx context.Context, c driver.Claim) error {
		if first, _, known := m.known(c); known && first.Token == c.Token && m.owns(c) {
			kept := c
			kept.Keep = time.Second
			return m.store.Release(ctx, kept)
		}
		return m.store.Release(ctx, c)
	}, wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		m.known(c)
		return m.store.Wait(ctx, c)
	}}, []string{"AReleaseByOneWhoOwnsNothingLeavesTheQueue"}},
	"a refusal always has a label": {
		gives(func(_ *mutant, _ driver.Claim, g driver.Grant, err error) (driver.Grant, error) {
			if held, ok := errors.AsType[*driver.Held](err); ok && held.Label == "" {
				held.Label = "somebody"
			}
			return g, err
		}),
		[]string{"WhatMustBeLookedAtIsNeverGrantedDirectly"},
	},
	"a wait leaves the queue as it ends": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := m.store.Wait(ctx, c)
		if err != nil {
			_ = m.store.Release(context.WithoutCancel(ctx), c)
		}
		return g, err
	}}, []string{"EntriesAreServedInTheirOrder", "AFreeNameIsForTheFirstInTheQueue"}},
	"a wait looks once": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		m.looks(c)
		return driver.Poll(ctx, c, m.store.Acquire)
	}}, []string{"EntriesAreServedInTheirOrder"}},
	"entries do not die": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := m.store.Wait(ctx, c)
		if err != nil {
			go func() {
				for range 20 {
					time.Sleep(time.Second / 2)
					m.looks(c)
				}
			}()
		}
		return g, err
	}}, []string{"ADeadEntryIsDroppedByWhoeverMeetsIt"}},
	"who is granted the name stays in the queue": {
		gives(func(m *mutant, c driver.Claim, g driver.Grant, err error) (driver.Grant, error) {
			if err == nil {
				c.Token += "again"
				m.looks(c)
			}
			return g, err
		}),
		[]string{"AGrantThatNobodyHearsOfIsFoundOrGivenBack", "ALookBesideItsOwnGrantDoesNotQueueTheOwner"},
	},
	"everything is granted directly": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		c.Dedup, c.Keep, c.Handoff, c.Limit = 0, 0, "", 0
		return m.store.Wait(ctx, c)
	}}, []string{
		"WhatMustBeLookedAtIsNeverGrantedDirectly", "AWaitForWorkThatIsDoneSaysSoAtOnce", "ReadersDoNotStarveAWriterThatWaits", "KindsDoNotMeetUnderConcurrency",
	}},
	"who waits with Keep is granted little": {
		asks(func(_ *mutant, c driver.Claim) driver.Claim {
			if c.Keep > 0 {
				c.TTL = driver.PlaceLife(c.TTL)
			}
			return c
		}),
		[]string{"WhatMustBeLookedAtIsNeverGrantedDirectly"},
	},
	"the first wish stays": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		first, _, _ := m.known(c)
		first.Heard = c.Heard
		return m.store.Wait(ctx, first)
	}}, []string{"WhatMustBeLookedAtIsNeverGrantedDirectly"}},
	"an old message is believed": {mutant{believes: func(string, string) bool { return true }}, []string{"AForgedMessageGrantsNothing"}},
	"a message with the token is believed": {
		mutant{believes: strings.HasPrefix},
		[]string{"AForgedMessageGrantsNothing"},
	},
	"a message with the token and another number is believed": {
		mutant{believes: func(text, token string) bool {
			return strings.HasPrefix(text, token) && !strings.HasPrefix(text, token+" 1")
		}},
		[]string{"AForgedMessageGrantsNothing"},
	},
	"those who share have twice the time": {
		asks(func(_ *mutant, c driver.Claim) driver.Claim {
			if !c.Exclusive() {
				c.TTL *= 2
			}
			return c
		}),
		[]string{"EachOfThoseWhoShareHasItsOwnTime"},
	},
	"a reader leaves no marker": {
		ends(func(_ *mutant, c driver.Claim) driver.Claim {
			if c.Shared() {
				c.Dedup = 0
			}
			return c
		}),
		[]string{"AMarkerIsLeftHoweverTheNameWasGot"},
	},
	"there is room for one more": {
		asks(func(_ *mutant, c driver.Claim) driver.Claim {
			if c.Limit > 1 {
				c.Limit++
			}
			return c
		}),
		[]string{"AsManyHoldAsTheLimitAllows", "KindsDoNotMeetUnderConcurrency"},
	},
	"a limit is a reader": {
		asks(func(_ *mutant, c driver.Claim) driver.Claim {
			if c.Limit > 1 {
				c.Limit = driver.Readers
			}
			return c
		}),
		[]string{"KindsDoNotGoTogether"},
	},
	"a permit asked for again is another one": {mutant{acquire: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		if _, _, again := m.known(c); again {
			c.Token += "again"
		}
		return m.store.Acquire(ctx, c)
	}}, []string{"AcquireIsIdempotentPerToken"}},
	"a smaller limit is not told": {
		gives(func(_ *mutant, _ driver.Claim, g driver.Grant, err error) (driver.Grant, error) {
			g.Limit = 0
			return g, err
		}),
		[]string{"WhereLimitsDifferTheSmallestCounts"},
	},
	"markers are not looked for": {
		asks(func(_ *mutant, c driver.Claim) driver.Claim { c.Dedup = 0; return c }),
		[]string{"AMarkerStopsThoseWhoAskForIt"},
	},
	"a marker stands half as long": {
		ends(func(_ *mutant, c driver.Claim) driver.Claim { c.Dedup /= 2; return c }),
		[]string{"AMarkerGoesWithItsWindow"},
	},
	"who owns nothing leaves a marker": {mutant{release: func(m *mutant, ctx context.Context, c driver.Claim) error {
		err := m.store.Release(ctx, c)
		if err != nil && c.Dedup > 0 {
			if _, err := m.store.Acquire(ctx, c); err == nil {
				_ = m.store.Release(ctx, c)
			}
		}
		return err
	}}, []string{"OnlyTheOwnerCompletes"}},
	"the next release takes the marker": {mutant{
		release: func(m *mutant, ctx context.Context, c driver.Claim) error {
			m.mu.Lock()
			m.flag = c.Dedup == 0
			m.mu.Unlock()
			return m.store.Release(ctx, c)
		},
		acquire: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			m.mu.Lock()
			if m.flag {
				c.Dedup = 0
			}
			m.mu.Unlock()
			return m.store.Acquire(ctx, c)
		},
	}, []string{"AMarkerStopsThoseWhoAskForIt"}},
	"who has waited leaves no marker": {mutant{
		wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			m.known(c)
			return m.store.Wait(ctx, c)
		},
		release: func(m *mutant, ctx context.Context, c driver.Claim) error {
			if _, _, waited := m.known(c); waited {
				c.Dedup = 0
			}
			return m.store.Release(ctx, c)
		},
	}, []string{"AMarkerIsLeftHoweverTheNameWasGot"}},
	"nothing is kept": {
		ends(func(_ *mutant, c driver.Claim) driver.Claim { c.Keep, c.Handoff = 0, ""; return c }),
		[]string{"AKeptNameIsTakenByNobodyUntilItsTime", "AWaiterGetsAKeptNameAtItsTime", "ANameLeftForAHandoffGoesToNobodyElse"},
	},
	"a name is kept for its TTL at most": {
		ends(func(_ *mutant, c driver.Claim) driver.Claim { c.Keep = min(c.Keep, c.TTL); return c }),
		[]string{"AKeptNameIsTakenByNobodyUntilItsTime"},
	},
	"a kept name has no marker": {
		ends(func(_ *mutant, c driver.Claim) driver.Claim {
			if c.Keep > 0 {
				c.Dedup = 0
			}
			return c
		}),
		[]string{"AMarkerIsLeftHoweverTheNameWasGot"},
	},
	"what was acquired with Keep is kept": {mutant{
		acquire: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			m.known(c)
			return m.store.Acquire(ctx, c)
		},
		release: func(m *mutant, ctx context.Context, c driver.Claim) error {
			if first, _, known := m.known(c); known {
				c.Keep = max(c.Keep, first.Keep)
			}
			return m.store.Release(ctx, c)
		},
	}, []string{"AnAcquireWithKeepIsAGrantAsAnyOther"}},
	"a name is left for half as long": {
		ends(func(_ *mutant, c driver.Claim) driver.Claim { c.Keep /= 2; return c }),
		[]string{"ANameLeftForAHandoffComesFreeAtItsTime", "AKeptNameIsTakenByNobodyUntilItsTime"},
	},
	"a hand-off needs a name that was left": {mutant{acquire: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		if c.Handoff != "" && !m.owns(c) {
			bare := c
			bare.Handoff, bare.Token = "", c.Token+"probe"
			if _, err := m.store.Acquire(ctx, bare); err == nil {
				_ = m.store.Release(ctx, bare)
				return driver.Grant{}, &driver.Held{}
			}
		}
		return m.store.Acquire(ctx, c)
	}}, []string{"AHandoffOfNoNameIsAnOrdinaryClaim"}},
	"a hand-off is ignored": {
		asks(func(_ *mutant, c driver.Claim) driver.Claim { c.Handoff = ""; return c }),
		[]string{"AHandoffGoesBeforeTheQueue", "ANameLeftForAHandoffGoesToNobodyElse"},
	},
	"an owner is refused as by itself": {mutant{acquire: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		if m.owns(c) {
			return driver.Grant{}, &driver.Held{}
		}
		return m.store.Acquire(ctx, c)
	}}, []string{"EachOperationSurvivesAConnectionCutAtEachStep", "AcquireIsIdempotentPerToken"}},
	"a wait that was not answered says held": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := m.store.Wait(ctx, c)
		if err != nil && ctx.Err() != nil {
			err = &driver.Held{}
		}
		return g, err
	}}, []string{"ASilentServiceEndsNoCallLate"}},
	"a wait that was answered once says held": {mutant{wait: func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		var last atomic.Pointer[driver.Held]
		tell := c.Tell
		c.Heard = func(h *driver.Held) { last.Store(h); tell(h) }
		g, err := m.store.Wait(ctx, c)
		if held := last.Load(); err != nil && held != nil {
			err = held
		}
		return g, err
	}}, []string{"ASilentServiceEndsNoCallLate"}},
	"nobody knows that it cannot be reached": {
		mutant{unreachable: errors.New("no route")},
		[]string{"AServiceThatCannotBeReachedSaysSo"},
	},
	"an answer is an outage": {mutant{release: func(m *mutant, ctx context.Context, c driver.Claim) error {
		if err := m.store.Release(ctx, c); err != nil {
			return driver.Unavailable(errors.New("it answers"))
		}
		return nil
	}}, []string{"AnAnswerIsNoOutage"}},
	"it can be closed once": {mutant{close: func() func(context.Context) error {
		n := 0
		return func(context.Context) error {
			if n++; n > 1 {
				return errors.New("closed")
			}
			return nil
		}
	}()}, []string{"CloseReturnsAndWhatItEndedBeginsAgain"}},
	"Close waits for ever": {mutant{close: func(context.Context) error {
		time.Sleep(time.Minute)
		return nil
	}}, []string{"CloseReturnsWithItsContextWhereNothingAnswers"}},
	"names stay":           {mutant{leftover: []string{"name-1"}}, []string{"NamesUsedOnceLeaveNothing"}},
	"an outage loses data": {mutant{forgets: true}, []string{"AKilledServerIsUnavailableAndComesBack"}},
}

func TestTheMemoryBackendOfTheMutantsIsWhole(t *testing.T) {
	t.Parallel()
	each(nil, func(c testCase) {
		t.Run(c.name, func(t *testing.T) {
			failed, skipped := play(t, c, mutant{}.service)
			if len(failed) > 0 || skipped != "" {
				t.Errorf("%s%q", skipped, failed)
			}
		})
	})
}

func TestEachFaultIsFoundByItsCases(t *testing.T) {
	t.Parallel()
	cases := map[string]testCase{}
	missed := map[string]bool{}
	each(nil, func(c testCase) { cases[c.name], missed[c.name] = c, true })
	all := maps.Clone(mutants)
	maps.Copy(all, inspectMutants)
	for fault, m := range all {
		t.Run(fault, func(t *testing.T) {
			for _, name := range m.found {
				t.Run(name, func(t *testing.T) {
					c, ok := cases[name]
					if !ok {
						t.Fatal("there is no such case")
					}
					failed, skipped := play(t, c, m.service)
					if len(failed) == 0 {
						t.Errorf("not found; skipped: %q", skipped)
						return
					}
					delete(missed, name)
					t.Log(failed[0])
				})
			}
		})
	}
	for name := range missed {
		t.Errorf("%s has not been seen red", name)
	}
}
