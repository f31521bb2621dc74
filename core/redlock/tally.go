package redlock

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// reply is the last answer of a node.
type reply struct {
	node  int
	grant driver.Grant
	err   error
	came  bool
	last  bool // it has stopped waiting
	own   bool // an earlier attempt of this process may have been there
}

func (a reply) held() *driver.Held {
	h, _ := errors.AsType[*driver.Held](a.err)
	return h
}

// tally is what the nodes have answered to an attempt.
type tally struct {
	store   *Store
	claim   driver.Claim // as core asks
	began   time.Time    // before any request: no node's TTL began earlier
	answers []reply      // for each node
}

func (s *Store) newTally(c driver.Claim) *tally {
	return &tally{store: s, claim: c, began: time.Now(), answers: make([]reply, len(s.nodes))}
}

// add counts the answer of a node.
func (t *tally) add(a reply) {
	a.came = true
	if a.err != nil && a.held() == nil {
		a.err = t.store.at(a.node, a.err)
	}
	t.answers[a.node] = a
}

// counts says how many nodes have granted the name, have refused it, and have failed.
func (t *tally) counts() (granted, held, failed int) {
	for _, a := range t.answers {
		switch {
		case !a.came:
		case a.err == nil:
			granted++
		case a.held() != nil:
			held++
		default:
			failed++
		}
	}
	return granted, held, failed
}

func (t *tally) answered() int {
	granted, held, failed := t.counts()
	return granted + held + failed
}

func (t *tally) errs() (errs []error) {
	for _, a := range t.answers {
		switch {
		case a.own && a.held() != nil:
			errs = append(errs, t.store.at(a.node, errOwn))
		case a.came && a.err != nil && a.held() == nil:
			errs = append(errs, a.err)
		}
	}
	return errs
}

// close counts those who have not answered as failed.
func (t *tally) close(why error) {
	for i, a := range t.answers {
		if !a.came {
			t.add(reply{node: i, err: why, last: a.last})
		}
	}
}

// until is the end of what a node has granted.
func (t *tally) until(g driver.Grant) time.Time {
	ttl := t.claim.TTL
	if g.TTL > 0 {
		ttl = min(ttl, g.TTL)
	}
	if g.Asked.IsZero() {
		return t.began.Add(ttl)
	}
	return g.Asked.Add(ttl)
}

// grant is the best that a quorum of those who granted stands for. There has to be one.
func (t *tally) grant() driver.Grant {
	var untils []time.Time
	var longest []time.Duration
	g := driver.Grant{Asked: t.began}
	for _, a := range t.answers {
		if !a.came || a.err != nil {
			continue
		}
		untils = append(untils, t.until(a.grant))
		longest = append(longest, cmp.Or(a.grant.Longest, 1<<63-1))
		g.Fence = max(g.Fence, a.grant.Fence)
		if a.grant.Asked.Before(g.Asked) && !a.grant.Asked.IsZero() {
			g.Asked = a.grant.Asked
		}
	}
	slices.SortFunc(untils, func(a, b time.Time) int { return b.Compare(a) })
	slices.SortFunc(longest, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	g.TTL = min(t.claim.TTL, untils[t.store.quorum-1].Sub(g.Asked))
	if l := longest[t.store.quorum-1]; l < 1<<63-1 {
		g.Longest = l
	}
	return g
}

// refused says whether somebody is in the way, and no quorum is possible.
func (t *tally) refused() bool {
	_, held, failed := t.counts()
	return held > 0 && len(t.answers)-held-failed < t.store.quorum
}

// others says whether somebody is in the way who is certainly not an earlier attempt of this process, and whether no
// quorum is possible for that, even once those attempts have gone.
func (t *tally) others() (some, decisive bool) {
	others := 0
	for _, a := range t.answers {
		if a.held() != nil && !a.own {
			others++
		}
	}
	_, _, failed := t.counts()
	return others > 0, others > 0 && len(t.answers)-others-failed < t.store.quorum
}

// held says who is in the way, and when enough of the nodes come free at the latest. It
// may well be earlier.
func (t *tally) held() *driver.Held {
	var helds []*driver.Held
	granted, _, _ := t.counts()
	for _, a := range t.answers {
		if h := a.held(); h != nil {
			helds = append(helds, h)
		}
	}
	slices.SortFunc(helds, func(a, b *driver.Held) int { return cmp.Compare(a.Remaining, b.Remaining) })
	last := helds[min(max(t.store.quorum-granted, 1), len(helds))-1]
	h := &driver.Held{Label: last.Label, Remaining: last.Remaining}
	if helds[0].Remaining <= 0 { // one of them does not say
		h.Remaining = 0
	}
	return h
}

// failure is the error of an attempt that nobody has refused. certain says that it has left nothing, and never will.
func (t *tally) failure(certain bool) error { return t.store.failure(t.errs(), certain) }

// failure is the error of a call that no quorum has answered.
func (s *Store) failure(errs []error, certain bool) error {
	refused := 0
	for _, err := range errs {
		if errors.Is(err, driver.ErrRefused) { // it says so until somebody mends it
			refused++
		}
	}
	err := noQuorum(said(errs))
	if refused > len(s.nodes)-s.quorum {
		err = driver.Refused(err)
	}
	if certain {
		return driver.NotSent(err)
	}
	return err
}
