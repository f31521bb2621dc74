package zklock

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Renew implements driver.Driver.
//
// It asks for the claims' znodes in one transaction, which changes nothing. The client keeps the
// session alive. A renewal has to find out whether the session still is, and only the leader knows
// that. A plain read could be answered by a server that has lost the leader.
func (s *Store) Renew(ctx context.Context, claims []driver.Claim) []error {
	var errs []error
	err := s.renewals.tooMany()
	if err == nil {
		errs, err = run(ctx, s, &s.renewals, func(t *call) ([]error, error) { return t.renew(claims), nil })
	}
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

func (t *call) renew(claims []driver.Claim) []error {
	errs := make([]error, len(claims))
	asked := make([]renewal, len(claims))
	for i, c := range claims {
		asked[i] = t.renewal(i, c)
	}
	for len(asked) > 0 {
		asked = t.check(asked, errs)
	}
	return errs
}

// renewal finds the znode that c's token owns. If there is none, its path is that of no znode.
func (t *call) renewal(at int, c driver.Claim) renewal {
	r := renewal{at, c, nil, t.dir(c.Name) + "/" + entry(c)}
	t.set(func() {
		if n := t.nodes[key{c.Name, digest(c.Token)}]; n != nil && n.owned {
			r.node, r.path = n, t.dir(c.Name)+"/"+n.znode
		}
	})
	return r
}

// check asks for all znodes at once. If one is missing, the transaction says no more than that,
// and the rest is returned, to be asked for again.
func (t *call) check(asked []renewal, errs []error) (again []renewal) {
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
		gone := i < len(answers) && errors.Is(answers[i].Error, zk.ErrNoNode)
		if err == nil || gone {
			errs[r.at] = t.answer(r, gone)
			continue
		}
		errs[r.at] = err
		again = append(again, r)
	}
	if len(again) == len(asked) {
		return nil
	}
	return again
}

// answer lets a node live on, unless its znode is gone, its deletion began meanwhile, or the client has another session than
// the znode. A leader that is new can know the old session still: it gives it its whole time again, and nobody keeps it alive.
func (s *Store) answer(r renewal, gone bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := r.node; {
	case n == nil || n.ending || r.path != s.dir(n.name)+"/"+n.znode: // or it has another one now
		return driver.ErrNotOwner
	case gone || s.session.of(n.session) == 0:
		n.drop(0)
		return driver.ErrNotOwner
	case r.claim.TTL > 0:
		n.keep(r.claim.TTL)
	}
	return nil
}
