package oldadapter

import (
	"context"
	"reflect"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	old "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Node is d as a node of package redlock: the backend on the old contract inside it, or else d itself, without
// its queue and with nothing but exclusive claims. It is nil if d is.
func Node(d driver.Driver) old.Driver {
	if v := reflect.ValueOf(d); d == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	if a, ok := d.(interface{ Old() old.Driver }); ok {
		return a.Old()
	}
	if i, ok := d.(inspect.Inspector); ok {
		return seen{node{d}, i}
	}
	return node{d}
}

// node is a backend on the new contract as one on the old one.
type node struct{ is driver.Driver }

type seen struct {
	node
	inspect.Inspector
}

var (
	_ old.Validator  = node{}
	_ old.IdleCloser = node{}
	_ old.Locator    = node{}
)

func (n node) Validate() error { return n.is.Capabilities().Err }

func (n node) Location() string { return n.is.Capabilities().Location }

func (n node) CloseIdle(ctx context.Context) error {
	if c, ok := n.is.(driver.Closer); ok {
		return c.Close(ctx)
	}
	return nil
}

func (n node) Capabilities() old.Capabilities {
	can := n.is.Capabilities()
	return old.Capabilities{Backend: can.Backend, Punctual: can.Punctual, Fence: can.Fence, MinTTL: can.MinTTL, MaxName: can.MaxName}
}

func (n node) Acquire(ctx context.Context, c old.Claim) (old.Grant, error) {
	g, err := n.is.Acquire(ctx, claim(c))
	return old.Grant{Fence: g.Fence, Fences: g.Fences, TTL: g.TTL, Limit: g.Limit}, err
}

func (n node) Renew(ctx context.Context, claims []old.Claim) []error {
	all := make([]driver.Claim, len(claims))
	for i, c := range claims {
		all[i] = claim(c)
	}
	return n.is.Renew(ctx, all)
}

func (n node) Release(ctx context.Context, c old.Claim) error { return n.is.Release(ctx, claim(c)) }

// claim is c as far as package redlock makes one.
func claim(c old.Claim) driver.Claim {
	return driver.Claim{Name: c.Name, Token: c.Token, Label: c.Label, TTL: c.TTL}
}
