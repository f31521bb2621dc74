package zklock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Renew implements driver.Driver.
//
// It asks for the claims' znodes in one transaction, which changes nothing. The client keeps the
// session alive. A renewal has to find out whether the session still is, and only the leader knows
// that. A plain read could be answered by a server that has lost the leader.
func (s *store) Renew(ctx context.Context, claims []driver.Claim) []error {
	errs, err := run(ctx, s, func(t *trip) ([]error, error) { return t.renew(claims), nil })
	if err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	return errs
}

// renewal is one claim and where its znode is.
type renewal struct {
	at    int // in the caller's list
	claim driver.Claim
	node  *node
	path  string
}

func (t *trip) renew(claims []driver.Claim) []error {
	errs := make([]error, len(claims))
	var asked []renewal
	for i, c := range claims {
		r := renewal{at: i, claim: c}
		if errs[i] = t.locate(&r); errs[i] == nil {
			asked = append(asked, r)
		}
	}
	for len(asked) > 0 {
		asked = t.ask(asked, errs)
	}
	return errs
}

// locate says where a claim's znode is.
func (t *trip) locate(r *renewal) (err error) {
	if r.node, r.path = t.owned(r.claim); r.node != nil {
		return nil
	}
	seat, err := t.find(r.claim)
	r.path = t.dir(r.claim.Name) + "/" + seat
	return err
}

// ask asks for all znodes at once. If one is missing, the transaction says no more than that,
// and the rest is returned, to be asked for again.
func (t *trip) ask(asked []renewal, errs []error) (again []renewal) {
	checks := make([]any, len(asked))
	for i, r := range asked {
		checks[i] = &zk.CheckVersionRequest{Path: r.path, Version: -1}
	}
	var answers []zk.MultiResponse
	err := t.read(func() (err error) {
		answers, err = t.conn.Multi(checks...)
		return err
	})
	for i, r := range asked {
		switch {
		case err == nil:
			errs[r.at] = t.renewed(r)
		case i < len(answers) && errors.Is(answers[i].Error, zk.ErrNoNode):
			errs[r.at] = driver.ErrNotOwner
			t.lose(r.node, r.path)
		default:
			errs[r.at] = err
			again = append(again, r)
		}
	}
	if len(again) == len(asked) {
		return nil
	}
	return again
}

// owned finds the node of this Store that c's token owns.
func (s *store) owned(c driver.Claim) (n *node, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = s.nodes[nodeKey{c.Name, digest(c.Token)}]
	if n == nil || !n.owned || !fits(n.seat, c) {
		return nil, ""
	}
	return n, s.dir(c.Name) + "/" + n.seat
}

// renewed lets a node live on, unless its deletion began meanwhile, or the client has another session than the znode. A
// leader that is new can know the old session still: it gives it its whole time again, and nobody keeps it alive.
func (s *store) renewed(r renewal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := r.node; {
	case n != nil && s.session.of(n.session) == 0:
		n.until = time.Now()
		n.timer.Reset(0)
		return driver.ErrNotOwner
	case n == nil || r.claim.TTL == 0 && !n.ending:
	case n.ending:
		return driver.ErrNotOwner
	default:
		n.until = time.Now().Add(r.claim.TTL)
		n.timer.Reset(r.claim.TTL)
	}
	return nil
}

// lose deletes a node at the next occasion, which is now: somebody else has deleted its
// znode, at that path.
func (s *store) lose(n *node, path string) {
	if n == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.doubt || path != s.dir(n.key.name)+"/"+n.seat {
		return
	}
	n.until = time.Now()
	n.timer.Reset(0)
}
