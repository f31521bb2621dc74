package fallback

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
)

// errBeside leaves the outcome open, so that core cleans up behind the token once nobody asks with it any more. If it were released here, that
// could be executed when core has asked again, and believes it.
var errBeside = errors.New("granted beside a degraded lease of this process")

// passing passes calls on to the other driver, and keeps the books: who has a name by the service's word, and how many
// answers there were. It grants nothing beside a degraded lease.
type passing struct {
	inner   driver.Driver
	table   *table
	answers atomic.Int64
}

// Capabilities implements driver.Driver.
func (p *passing) Capabilities() driver.Capabilities {
	if p.inner == nil {
		return driver.Capabilities{Err: errors.New("fallback.New(nil)")}
	}
	return p.inner.Capabilities()
}

// Acquire implements driver.Driver.
func (p *passing) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if here := p.table.degraded(c.Name); here != nil {
		return driver.Grant{}, &here.held
	}
	return p.ask(ctx, c, p.inner.Acquire)
}

// Wait implements driver.Driver.
func (p *passing) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	tell := c.Heard
	c.Heard = func(h *driver.Held) {
		p.answers.Add(1)
		p.table.told(c)
		if tell != nil {
			tell(h)
		}
	}
	for {
		here := p.table.degraded(c.Name)
		if here == nil {
			return p.ask(ctx, c, p.inner.Wait)
		}
		if tell != nil {
			tell(&here.held)
		}
		if !here.over(ctx) {
			return driver.Grant{}, &here.held
		}
	}
}

// ask makes one call, and takes note of what came of it.
func (p *passing) ask(ctx context.Context, c driver.Claim, send func(context.Context, driver.Claim) (driver.Grant, error)) (driver.Grant, error) {
	g, err := send(ctx, c)
	if m := p.heard(err); m.Kind == driver.HeldBy {
		p.table.told(c)
	}
	if err != nil {
		return g, err
	}
	if !p.table.enter(c) {
		return driver.Grant{}, errBeside
	}
	return g, nil
}

func (p *passing) heard(err error) driver.Meaning {
	m := driver.Explain(err)
	if m.Answered() {
		p.answers.Add(1)
	}
	return m
}

// Renew implements driver.Driver.
func (p *passing) Renew(ctx context.Context, claims []driver.Claim) []error {
	if slices.ContainsFunc(claims, isLocal) {
		return p.renewBoth(ctx, claims)
	}
	errs := p.inner.Renew(ctx, claims)
	for i, err := range errs {
		c, m := claims[i], p.heard(err)
		switch {
		case m.Kind == driver.NotOwner:
			p.table.lost(c)
		case err == nil && c.TTL > 0:
			p.table.prolong(c)
		}
	}
	return errs
}

// renewBoth is Renew where some of the claims are degraded leases.
func (p *passing) renewBoth(ctx context.Context, claims []driver.Claim) []error {
	others := slices.DeleteFunc(slices.Clone(claims), isLocal)
	var said []error
	if len(others) > 0 {
		said = p.Renew(ctx, others)
	}
	errs := slices.Repeat([]error{call.ErrNoAnswer}, len(claims))
	for i, c := range claims {
		switch {
		case isLocal(c) && p.table.has(c):
			errs[i] = nil
		case isLocal(c):
			errs[i] = driver.ErrNotOwner
		case len(said) > 0:
			errs[i], said = said[0], said[1:]
		}
	}
	return errs
}

// Release implements driver.Driver. The work is over as it begins, so nobody of this process has the name any more.
func (p *passing) Release(ctx context.Context, c driver.Claim) error {
	known := p.table.leave(c)
	switch {
	case known:
		return nil
	case isLocal(c):
		return driver.ErrNotOwner
	}
	err := p.inner.Release(ctx, c)
	p.heard(err)
	return err
}

func isLocal(c driver.Claim) bool { return isOwn(c.Token) }
