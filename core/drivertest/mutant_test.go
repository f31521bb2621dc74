package drivertest

import (
	"context"
	"errors"
	"maps"
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
	store *memlock.Store
	mail  *mail

	can     func(c driver.Capabilities) driver.Capabilities
	acquire func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error)
	wait    func(m *mutant, ctx context.Context, c driver.Claim) (driver.Grant, error)
	renew   func(m *mutant, ctx context.Context, claims []driver.Claim) []error
	release func(m *mutant, ctx context.Context, c driver.Claim) error
	close   func(m *mutant) error

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

// memory is what the processes of a mutant have been asked for, all together.
type memory struct {
	mu    sync.Mutex              // protects the fields below
	first map[string]driver.Claim // by operation and token; "" stands for both that ask for a name
	times map[string]int          // likewise
}

// asked remembers that c came with an operation.
func (m *memory) asked(operation string, c driver.Claim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.times[operation+c.Token]++; m.times[operation+c.Token] == 1 {
		m.first[operation+c.Token] = c
	}
}

// did says how often c's token came with an operation, and as which claim the first time.
func (m *memory) did(operation string, c driver.Claim) (times int, first driver.Claim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.times[operation+c.Token], m.first[operation+c.Token]
}

func (m *mutant) Capabilities() driver.Capabilities {
	can := m.store.Capabilities()
	if m.can != nil {
		can = m.can(can)
	}
	return can
}

func (m *mutant) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	m.asked("acquire", c)
	m.asked("", c)
	if m.acquire != nil {
		return m.acquire(m, ctx, c)
	}
	return m.store.Acquire(ctx, c)
}

func (m *mutant) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	m.asked("wait", c)
	m.asked("", c)
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
	m.asked("release", c)
	if m.release != nil {
		return m.release(m, ctx, c)
	}
	return m.store.Release(ctx, c)
}

func (m *mutant) Close(context.Context) error {
	if m.close != nil {
		return m.close(m)
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
	m.store, m.memory = memlock.New(), &memory{first: map[string]driver.Claim{}, times: map[string]int{}}
	m.mail = &mail{believes: m.believes, waiting: make(map[*claim]context.CancelCauseFunc)}
	return m.config()
}

func (m mutant) config() Config {
	s := m.store
	open := func() driver.Driver {
		one := m
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
			down := m
			down.store = memlock.New()
			down.store.SetDown(true)
			if m.unreachable != nil {
				down.acquire = func(*mutant, context.Context, claim) (grant, error) { return grant{}, m.unreachable }
			}
			return &down
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
	waiting map[*claim]context.CancelCauseFunc // what makes one believe that it was told
}

var errFooled = errors.New("a message is believed")

func (m *mail) open(string) (heard func() []Message, send func(Message)) {
	heard = func() []Message {
		m.mu.Lock()
		defer m.mu.Unlock()
		return append([]Message(nil), m.all...)
	}
	send = func(msg Message) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for c, fool := range m.waiting {
			if m.believes != nil && m.believes(msg.Text, c.Token) {
				fool(errFooled)
			}
		}
	}
	return heard, send
}

func (m *mail) wait(ctx context.Context, c claim, wait func(context.Context, claim) (grant, error)) (grant, error) {
	ctx, fool := context.WithCancelCause(ctx)
	defer fool(nil)
	m.mu.Lock()
	m.waiting[&c] = fool
	m.mu.Unlock()
	g, err := wait(ctx, c)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, &c)
	if err == nil {
		m.all = append(m.all, Message{"channel", c.Token + " 1 nonce 17"})
	}
	if errors.Is(context.Cause(ctx), errFooled) {
		return grant{Fence: 1}, nil
	}
	return g, err
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
			for name := range strings.FieldsSeq(m.found) {
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
