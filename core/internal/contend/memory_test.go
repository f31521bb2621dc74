package contend

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// memory is a backend in memory, with a queue and direct grants. faulty says of each command what goes wrong: its answer is lost, it
// comes late, or both.
type memory struct {
	faulty func() (lost bool, late time.Duration)
	deaf   bool

	mu    sync.Mutex // protects the fields below
	names map[string]*name
	sent  int // commands
}

type name struct {
	owner   string
	expires time.Time
	fence   uint64
	queue   []*entry
}

type entry struct {
	claim driver.Claim
	asked time.Time
	dies  time.Time
	told  chan driver.Grant // of size one
}

func newMemory() *memory { return &memory{names: map[string]*name{}} }

func (m *memory) Capabilities() driver.Capabilities {
	return driver.Capabilities{Punctual: true, Forgets: true, Hears: !m.deaf, Block: true, Fence: true, Keep: true}
}

// command runs one command, unless ctx ends before its answer.
func (m *memory) command(ctx context.Context, c driver.Claim, run func(n *name) (driver.Grant, error)) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, driver.NotSent(err)
	}
	do := func() (driver.Grant, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sent++
		n := m.names[c.Name]
		if n == nil {
			n = new(name)
			m.names[c.Name] = n
		}
		now := time.Now()
		if n.owner != "" && !now.Before(n.expires) {
			n.owner = ""
		}
		n.queue = slices.DeleteFunc(n.queue, func(e *entry) bool { return !now.Before(e.dies) })
		return run(n)
	}
	if m.faulty == nil {
		return do()
	}
	lost, late := m.faulty()
	type answer struct {
		g   driver.Grant
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		time.Sleep(late)
		g, err := do()
		if !lost {
			answers <- answer{g, err}
		}
	}()
	select {
	case a := <-answers:
		return a.g, a.err
	case <-ctx.Done():
		return driver.Grant{}, ctx.Err()
	}
}

func (n *name) grant(c driver.Claim, until time.Time) driver.Grant {
	count := max(1, c.Fences)
	if len(n.queue) > 1 {
		count = min(count, driver.FencesBesideOthers)
	}
	g := driver.Grant{Fence: n.fence + 1, Fences: count}
	n.fence += uint64(count)
	n.owner, n.expires = c.Token, until
	n.leave(c.Token)
	return g
}

func (n *name) leave(token string) {
	n.queue = slices.DeleteFunc(n.queue, func(e *entry) bool { return e.claim.Token == token })
}

func (n *name) ask(c driver.Claim) (driver.Grant, error) {
	if c.Handoff != "" && n.owner == "nobody"+c.Handoff {
		return n.grant(c, time.Now().Add(c.TTL)), nil
	}
	if n.owner == c.Token || n.owner == "" && (len(n.queue) == 0 || n.queue[0].claim.Token == c.Token) {
		return n.grant(c, time.Now().Add(c.TTL)), nil
	}
	n.serve()
	return driver.Grant{}, &driver.Held{Remaining: time.Until(n.expires)}
}

func (n *name) serve() {
	if n.owner != "" || len(n.queue) == 0 {
		return
	}
	e := n.queue[0]
	var g driver.Grant
	if e.claim.Plain() && time.Until(e.dies) > driver.PlaceLife(e.claim.TTL)/2 {
		g = n.grant(e.claim, e.dies)
		g.TTL, g.Asked = driver.PlaceLife(e.claim.TTL), e.asked
	}
	select {
	case e.told <- g:
	default:
	}
}

func (m *memory) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return m.command(ctx, c, func(n *name) (driver.Grant, error) { return n.ask(c) })
}

func (m *memory) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if m.deaf {
		return driver.Poll(ctx, c, m.Acquire)
	}
	for {
		asked, told := time.Now(), make(chan driver.Grant, 1)
		granted, err := m.command(ctx, c, func(n *name) (driver.Grant, error) {
			g, err := n.ask(c)
			if err == nil || n.owner == c.Token {
				return g, err
			}
			e := &entry{c, asked, asked.Add(driver.PlaceLife(c.TTL)), told}
			for i := range n.queue {
				if n.queue[i].claim.Token == c.Token {
					if n.queue[i].asked.Before(asked) {
						n.queue[i] = e
					}
					return g, err
				}
			}
			n.queue = append(n.queue, e)
			n.serve()
			return g, err
		})
		held, ok := err.(*driver.Held) //nolint:errorlint // made above
		if !ok {
			return granted, err
		}
		c.Tell(held)
		select {
		case g := <-told:
			if g.Fence > 0 {
				return g, nil
			}
		case <-ctx.Done():
			return driver.Grant{}, held
		}
	}
}

func (m *memory) Renew(ctx context.Context, claims []driver.Claim) []error {
	errs := make([]error, len(claims))
	for i, c := range claims {
		_, errs[i] = m.command(ctx, c, func(n *name) (g driver.Grant, err error) {
			if n.owner != c.Token {
				return g, driver.ErrNotOwner
			}
			n.expires = time.Now().Add(c.TTL)
			return g, nil
		})
	}
	return errs
}

func (m *memory) Release(ctx context.Context, c driver.Claim) error {
	_, err := m.command(ctx, c, func(n *name) (g driver.Grant, err error) {
		n.leave(c.Token)
		if n.owner != c.Token {
			n.serve()
			return g, driver.ErrNotOwner
		}
		n.owner = ""
		if c.Keep > 0 {
			n.owner, n.expires = "nobody"+c.Handoff, time.Now().Add(c.Keep)
		}
		n.serve()
		return g, nil
	})
	return err
}

// left says what is left of all names.
func (m *memory) left() (owned, queued int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.names {
		if n.owner != "" && time.Now().Before(n.expires) {
			owned++
		}
		queued += len(n.queue)
	}
	return owned, queued
}

func (m *memory) commands() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent
}
